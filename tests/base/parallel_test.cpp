#include "retort/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace retort::base {
namespace {

TEST(Parallel, CallsEachTaskOnce) {
  for (const unsigned threads : {1U, 2U, 5U, 64U})
    for (const std::size_t count : {0U, 1U, 3U, 1000U}) {
      std::vector<std::atomic<int>> calls(count);
      parallel_for(count, threads, [&](std::size_t i) { ++calls[i]; });
      for (const auto& call : calls) EXPECT_EQ(call, 1);
    }
  EXPECT_GE(usable_processors(), 1U);
}

TEST(Parallel, ThrowsWhatTheFirstFailingTaskThrew) {
  for (const unsigned threads : {1U, 4U}) {
    std::atomic<std::size_t> calls = 0;
    try {
      parallel_for(100'000, threads, [&](std::size_t i) {
        ++calls;
        if (i >= 7) throw std::runtime_error(std::to_string(i));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "7");
    }
    EXPECT_GE(calls, 8U);
    EXPECT_LE(calls, 7U + threads);
  }
}

}  // namespace
}  // namespace retort::base
