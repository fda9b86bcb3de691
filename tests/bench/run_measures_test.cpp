// What the times of tokens say, on runs small enough to be counted by hand.
#include "retort/bench/run_measures.h"

#include <gtest/gtest.h>

namespace retort::bench {
namespace {

double value(const RunMeasures& measures, Measure measure) {
  return value_of(measures, measure).value();
}

TEST(RunMeasures, CountQueueingWhereTextsWaitTogether) {
  const RunTimes times{.tokens = {{1, 2, 4}, {3, 4, 8}}, .joules = 12};
  const auto found = measures_of(times, /*one_at_a_time=*/false);
  EXPECT_DOUBLE_EQ(value(found, Measure::tokens_per_second), 6.0 / 8);
  EXPECT_DOUBLE_EQ(value(found, Measure::prompts_per_second), 2.0 / 8);
  EXPECT_DOUBLE_EQ(value(found, Measure::first_token_seconds), 2);
  EXPECT_DOUBLE_EQ(value(found, Measure::first_token_seconds_p95), 2.9);  // 1, 3
  EXPECT_DOUBLE_EQ(value(found, Measure::between_tokens_seconds), 1.5);   // 1, 1, 2, 4
  EXPECT_DOUBLE_EQ(value(found, Measure::between_tokens_seconds_p95), 3.7);
  EXPECT_DOUBLE_EQ(value(found, Measure::joules_per_token), 2);
}

TEST(RunMeasures, CountATextAloneFromTheEndOfTheOneBefore) {
  const RunTimes times{.tokens = {{1, 2}, {5, 6}, {7, 9}}};
  const auto found = measures_of(times, /*one_at_a_time=*/true);
  EXPECT_DOUBLE_EQ(value(found, Measure::first_token_seconds), (1.0 + 3 + 1) / 3);
  EXPECT_DOUBLE_EQ(value(found, Measure::tokens_per_second), 6.0 / 9);
}

TEST(RunMeasures, LeaveOutWhatARunDoesNotSay) {
  const auto found = measures_of({.tokens = {{1}, {2}}}, false);
  EXPECT_FALSE(value_of(found, Measure::between_tokens_seconds));
  EXPECT_FALSE(value_of(found, Measure::joules_per_token));
}

}  // namespace
}  // namespace retort::bench
