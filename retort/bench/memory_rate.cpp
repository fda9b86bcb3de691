#include "retort/bench/memory_rate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <string>

#include "retort/base/units.h"

namespace retort::bench {
namespace {

constexpr std::int64_t kLeastArray = std::int64_t{64} << 20, kMostArray = std::int64_t{1} << 30;
constexpr std::int64_t kDeviceCache = std::int64_t{256} << 20;  // of an MI300; those of others are smaller

std::string line_of(const base::Path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// "32768K", as the kernel writes it.
std::int64_t size_of_cache(const std::string& text) {
  const std::int64_t unit = text.ends_with('K') ? 1 << 10 : text.ends_with('M') ? 1 << 20 : 1;
  const auto count = base::parse_count(unit > 1 ? text.substr(0, text.size() - 1) : text);
  return count ? *count * unit : 0;
}

}  // namespace

std::int64_t last_level_cache_bytes(const base::Path& root) {
  std::error_code ignored;
  // By level, then by the processors that share it: each cache stands below all of these.
  std::map<std::string, std::map<std::string, std::int64_t>> levels;
  for (const auto& processor : std::filesystem::directory_iterator(root / "sys/devices/system/cpu", ignored))
    for (const auto& cache : std::filesystem::directory_iterator(processor.path() / "cache", ignored))
      if (line_of(cache.path() / "type") != "Instruction")
        levels[line_of(cache.path() / "level")][line_of(cache.path() / "shared_cpu_list")] =
            size_of_cache(line_of(cache.path() / "size"));
  std::int64_t bytes = 0;
  if (!levels.empty())
    for (const auto& [processors, size] : levels.rbegin()->second) bytes += size;
  return bytes;
}

std::int64_t cold_bytes(c10::Device device) {
  const auto cache = device.is_cpu() ? last_level_cache_bytes() : kDeviceCache;
  return std::clamp(4 * cache, kLeastArray, kMostArray);
}

MemoryRate MemoryRate::better(const MemoryRate& other) const {
  return {array_bytes, std::max(read, other.read), std::max(update, other.update),
          std::max(triad, other.triad)};
}

MemoryRate measure_memory(c10::Device device, std::int64_t most_bytes, const Effort& effort) {
  MemoryRate rate{.array_bytes = std::min(cold_bytes(device), most_bytes / 3 / 64 * 64)};
  const auto count = rate.array_bytes / std::int64_t{sizeof(float)};
  auto a = at::full({count}, 1.0, at::TensorOptions().dtype(at::kFloat).device(device));
  auto b = at::full_like(a, 2.0);
  const auto c = at::full_like(a, 3.0);
  std::array<Timed, 3> works = {Timed{[&] { (void)at::sum(c); }}, Timed{[&] { b.mul_(0.999); }},
                                Timed{[&] { at::add_out(a, b, c, 0.5); }}};
  time_in_turn(works, effort, device);
  const auto bytes = static_cast<double>(rate.array_bytes);
  rate.read = bytes / works[0].seconds;
  rate.update = 2 * bytes / works[1].seconds;
  rate.triad = 3 * bytes / works[2].seconds;
  return rate;
}

}  // namespace retort::bench
