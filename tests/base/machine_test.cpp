// The memory that nested control groups leave, on made-up machines.
#include "retort/base/machine.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "support/temporary_directory.h"

namespace retort::base {
namespace {

constexpr std::int64_t kMega = 1'000'000;

class Machine : public testing::Test {
 protected:
  void SetUp() override {
    write("proc/meminfo", "MemTotal:  9000000 kB\nMemFree:  1 kB\nMemAvailable:  8000000 kB\n");
  }
  void write(const Path& file, const std::string& text) const {
    std::filesystem::create_directories((directory_ / file).parent_path());
    std::ofstream(directory_ / file) << text;
  }
  void mount_second(const std::string& top, const std::string& directory = "/sys/fs/cgroup") const {
    mounts_ +=
        "26 25 0:23 " + top + " " + directory + " rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    write("proc/self/mountinfo", mounts_);
  }
  void mount_first(const std::string& top, const std::string& controllers,
                   const std::string& directory) const {
    mounts_ +=
        "35 31 0:32 " + top + " " + directory + " rw,relatime - cgroup cgroup rw," + controllers + "\n";
    write("proc/self/mountinfo", mounts_);
  }
  void group_second(const std::string& group, const std::string& max, const std::string& high,
                    std::int64_t used, std::int64_t inactive = 0) const {
    const auto path = Path("sys/fs/cgroup") / Path(group).relative_path();
    write(path / "memory.max", max + "\n");
    write(path / "memory.high", high + "\n");
    write(path / "memory.current", std::to_string(used) + "\n");
    write(path / "memory.stat", "anon 5\nfile 7\ninactive_file " + std::to_string(inactive) +
                                    "\nactive_file 0\nslab_reclaimable 0\n");
  }
  void group_first(const std::string& group, std::int64_t limit, std::int64_t used,
                   const std::string& statistics = "") const {
    const auto path = Path("sys/fs/cgroup/memory") / Path(group).relative_path();
    write(path / "memory.limit_in_bytes", std::to_string(limit) + "\n");
    write(path / "memory.usage_in_bytes", std::to_string(used) + "\n");
    write(path / "memory.use_hierarchy", "1\n");
    write(path / "memory.stat", statistics);
  }
  std::int64_t available() const { return available_memory_bytes(directory_ / ""); }

  test::TemporaryDirectory directory_;
  mutable std::string mounts_;
};

constexpr std::int64_t kNoLimitOfFirst = 9223372036854771712;

TEST_F(Machine, WithoutControlGroupsHasWhatTheKernelCallsAvailable) {
  EXPECT_EQ(available(), std::int64_t{8'000'000} * 1024);
}

TEST_F(Machine, TakesTheLeastThatNestedGroupsLeave) {
  mount_second("/");
  write("proc/self/cgroup", "0::/slice/job/step\n");
  group_second("/slice/job/step", "max", "max", 900 * kMega);
  group_second("/slice/job", "2000000000", "max", 1200 * kMega);
  group_second("/slice", "4000000000", "max", 3000 * kMega);
  EXPECT_EQ(available(), 800 * kMega);
  group_second("/slice", "4000000000", "max", 3700 * kMega);  // what others took
  EXPECT_EQ(available(), 300 * kMega);
  group_second("/slice", "4000000000", "max", 4100 * kMega);
  EXPECT_EQ(available(), 0);
}

TEST_F(Machine, HasNoLimitWhereAllGroupsSayMax) {
  mount_second("/");
  write("proc/self/cgroup", "0::/slice/job\n");
  group_second("/slice/job", "max", "max", 900 * kMega);
  group_second("/slice", "max", "max", 3000 * kMega);
  EXPECT_EQ(available(), std::int64_t{8'000'000} * 1024);
}

TEST_F(Machine, StopsWhereTheKernelBeginsToSlowDown) {
  mount_second("/");
  write("proc/self/cgroup", "0::/job\n");
  group_second("/job", "2000000000", "1500000000", 1000 * kMega);
  EXPECT_EQ(available(), 500 * kMega);
}

TEST_F(Machine, CountsPageCacheAsFree) {
  mount_second("/");
  write("proc/self/cgroup", "0::/job\n");
  group_second("/job", "2000000000", "max", 1900 * kMega, 1500 * kMega);
  EXPECT_EQ(available(), 1600 * kMega);
  write("sys/fs/cgroup/job/memory.stat",
        "inactive_file 100000000\nactive_file 200000000\nslab_reclaimable 50000000\n");
  EXPECT_EQ(available(), 450 * kMega);
}

TEST_F(Machine, KnowsTheFirstVersion) {
  mount_first("/", "cpu,cpuacct", "/sys/fs/cgroup/cpu");
  mount_first("/", "memory", "/sys/fs/cgroup/memory");
  write("proc/self/cgroup", "7:cpu,cpuacct:/other\n4:memory:/slurm/job_1/step_0\n1:name=systemd:/\n");
  group_first("/", kNoLimitOfFirst, 7000 * kMega);
  group_first("/slurm", kNoLimitOfFirst, 6000 * kMega);
  group_first("/slurm/job_1", 1000 * kMega, 700 * kMega,
              "total_inactive_file 100000000\ntotal_active_file 50000000\n");
  group_first("/slurm/job_1/step_0", kNoLimitOfFirst, 400 * kMega);
  EXPECT_EQ(available(), 450 * kMega);
  write("sys/fs/cgroup/memory/slurm/job_1/memory.use_hierarchy",
        "0\n");  // then the step does not count there
  EXPECT_EQ(available(), std::int64_t{8'000'000} * 1024);
}

// A container sees its own group as the top; what is above it stands in memory.stat.
TEST_F(Machine, KnowsAContainerOfTheFirstVersion) {
  mount_first("/docker/abc", "memory", "/sys/fs/cgroup/memory");
  write("proc/self/cgroup", "4:memory:/docker/abc/inner\n");
  group_first("/", kNoLimitOfFirst, 600 * kMega, "hierarchical_memory_limit 900000000\n");
  group_first("/inner", 800 * kMega, 100 * kMega, "hierarchical_memory_limit 800000000\n");
  EXPECT_EQ(available(), 300 * kMega);
}

TEST_F(Machine, KnowsAContainerOfTheSecondVersion) {
  mount_second("/");
  write("proc/self/cgroup", "0::/\n");
  group_second("/", "700000000", "max", 500 * kMega);
  EXPECT_EQ(available(), 200 * kMega);
}

// Memory belongs to one of the two: version 2 is there for systemd only.
TEST_F(Machine, KnowsBothVersionsBesideEachOther) {
  mount_first("/", "memory", "/sys/fs/cgroup/memory");
  mount_second("/", "/sys/fs/cgroup/unified");
  write("proc/self/cgroup", "4:memory:/job\n0::/user.slice\n");
  group_first("/", kNoLimitOfFirst, 0);
  group_first("/job", 1000 * kMega, 600 * kMega);
  write("sys/fs/cgroup/unified/user.slice/cgroup.procs", "1\n");
  EXPECT_EQ(available(), 400 * kMega);
}

TEST_F(Machine, AsksTheRealOne) {
  EXPECT_GT(available_memory_bytes(), 0);
  EXPECT_LT(available_memory_bytes(), std::int64_t{1} << 60);
}

}  // namespace
}  // namespace retort::base
