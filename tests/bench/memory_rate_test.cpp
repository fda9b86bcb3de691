// The caches that arrays have to exceed, as the kernel tells them.
#include "retort/bench/memory_rate.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "support/temporary_directory.h"

namespace retort::bench {
namespace {

class Caches {
 public:
  void add(int processor, int index, const char* level, const char* type, const char* size,
           const char* shared) const {
    const auto path = root_.path() / "sys/devices/system/cpu" / ("cpu" + std::to_string(processor)) /
                      "cache" / ("index" + std::to_string(index));
    std::filesystem::create_directories(path);
    std::ofstream(path / "level") << level << "\n";
    std::ofstream(path / "type") << type << "\n";
    std::ofstream(path / "size") << size << "\n";
    std::ofstream(path / "shared_cpu_list") << shared << "\n";
  }
  std::int64_t bytes() const { return last_level_cache_bytes(root_.path()); }
  std::filesystem::path path() const { return root_.path(); }

 private:
  test::TemporaryDirectory root_;
};

TEST(LastLevelCache, IsTheSumOfAllThatProcessorsShare) {
  const Caches caches;
  for (const int processor : {0, 1, 2, 3}) {
    const std::string own = std::to_string(processor), shared = processor < 2 ? "0-1" : "2-3";
    caches.add(processor, 0, "1", "Data", "32K", own.c_str());
    caches.add(processor, 1, "1", "Instruction", "64K", own.c_str());
    caches.add(processor, 2, "2", "Unified", "1M", own.c_str());
    caches.add(processor, 3, "3", "Unified", "32768K", shared.c_str());
  }
  EXPECT_EQ(caches.bytes(), 2 * 32768 * 1024);
}

TEST(LastLevelCache, MayBeTheSecondOrNone) {
  const Caches caches;
  EXPECT_EQ(caches.bytes(), 0);
  std::filesystem::create_directories(caches.path() / "sys/devices/system/cpu/cpufreq");
  EXPECT_EQ(caches.bytes(), 0);
  caches.add(0, 2, "2", "Unified", "2M", "0");
  EXPECT_EQ(caches.bytes(), 2 << 20);
  caches.add(0, 2, "2", "Unified", "much", "0");
  EXPECT_EQ(caches.bytes(), 0);
}

TEST(MemoryRate, IsMeasuredOnArraysThatFitIntoWhatIsAllowed) {
  const auto rate = measure_memory(at::kCPU, 3 << 20, {.seconds = 0});
  EXPECT_EQ(rate.array_bytes, 1 << 20);
  EXPECT_TRUE(std::isfinite(rate.read) && rate.read > 0);
  EXPECT_TRUE(std::isfinite(rate.update) && rate.update > 0);
  EXPECT_TRUE(std::isfinite(rate.triad) && rate.triad > 0);
  EXPECT_EQ((MemoryRate{1, 5, 10, 6}).least_seconds(100, 0), 20);
  EXPECT_EQ((MemoryRate{1, 5, 10, 6}).least_seconds(100, 200), 30);
  EXPECT_EQ((MemoryRate{1, 5, 7, 6}).better({1, 6, 2, 8}).triad, 8);
  EXPECT_EQ((MemoryRate{1, 5, 7, 6}).better({1, 6, 2, 8}).update, 7);
  EXPECT_GE(cold_bytes(at::kCPU), 64 << 20);
}

}  // namespace
}  // namespace retort::bench
