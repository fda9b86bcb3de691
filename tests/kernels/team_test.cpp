// Work of microseconds that threads share: every element is met once, whoever helps.
#include "retort/kernels/cpu/team.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace retort {
namespace {

class TeamTest : public testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(4); }
  void TearDown() override { at::set_num_threads(threads_); }

  // Counts how often each element is met.
  static void expect_each_once(std::int64_t count, std::int64_t least) {
    std::vector<std::atomic<int>> met(static_cast<std::size_t>(count));
    kernels::cpu::for_ranges(count, least, [&](std::int64_t begin, std::int64_t end) {
      EXPECT_TRUE(begin < end && (end - begin >= least || end == count)) << begin << ", " << end;
      for (auto i = begin; i < end; ++i) ++met[static_cast<std::size_t>(i)];
    });
    for (const auto& times : met) ASSERT_EQ(times.load(), 1);
  }

 private:
  int threads_ = at::get_num_threads();
};

TEST_F(TeamTest, MeetsEveryElementOnce) {
  for (int i = 0; i < 2000; ++i)
    for (const std::int64_t count : {0, 1, 2, 7, 100, 1003}) expect_each_once(count, 1 + i % 9);
}

TEST_F(TeamTest, HelpsAgainAfterASleep) {
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    expect_each_once(500, 3);
  }
}

TEST_F(TeamTest, IsAskedFromSeveralThreadsAtOnce) {
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller)
    callers.emplace_back([] {
      for (int i = 0; i < 500; ++i) expect_each_once(200, 2);
    });
  for (auto& caller : callers) caller.join();
}

TEST_F(TeamTest, LeavesAllToTheCallerInsideAParallelLoop) {
  at::parallel_for(0, 4, 1, [](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) expect_each_once(100, 1);
  });
}

TEST_F(TeamTest, SharesWorkAmongThreads) {
  std::atomic<int> at_once{0}, most{0};
  kernels::cpu::for_ranges(4, 1, [&](std::int64_t, std::int64_t) {
    const int now = ++at_once;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    --at_once;
  });
  EXPECT_GT(most.load(), 1);
}

}  // namespace
}  // namespace retort
