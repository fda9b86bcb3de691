// The learning rate of a step.
#include "retort/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace retort {
namespace {

TEST(Schedule, WarmsUpLinearlyAndFallsAsACosineToTheFinalFraction) {
  const optim::OptimOptions options{.warmup_steps = 10, .final_lr_fraction = 0.1};
  const auto at = [&](std::int64_t step) { return optim::schedule_factor(options, step, 110); };
  EXPECT_DOUBLE_EQ(at(1), 0.1);
  EXPECT_DOUBLE_EQ(at(5), 0.5);
  EXPECT_DOUBLE_EQ(at(10), 1);
  EXPECT_DOUBLE_EQ(at(60), 0.55);  // half way: the mean of 1 and 0.1
  EXPECT_NEAR(at(35), 0.1 + 0.9 * (0.5 + 0.25 * std::sqrt(2.0)), 1e-15);
  EXPECT_NEAR(at(110), 0.1, 1e-15);
}

TEST(Schedule, TakesAFractionForTheWarmUpAndMayStayConstant) {
  optim::OptimOptions options{.warmup_fraction = 0.02};
  EXPECT_DOUBLE_EQ(optim::schedule_factor(options, 1, 100), 0.5);
  EXPECT_DOUBLE_EQ(optim::schedule_factor(options, 2, 100), 1);
  EXPECT_DOUBLE_EQ(optim::schedule_factor(options, 1, 1), 1);
  options.schedule = optim::ScheduleKind::constant;
  EXPECT_DOUBLE_EQ(optim::schedule_factor(options, 100, 100), 1);
  options.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(optim::schedule_factor(options, 1, 100), 1);
}

// ceil(0.02 * 110) = 3: the first step of a short stage is not a full one.
TEST(Schedule, RoundsTheFractionOfTheWarmUpUp) {
  const optim::OptimOptions options{.warmup_fraction = 0.02};
  EXPECT_DOUBLE_EQ(optim::schedule_factor(options, 1, 110), 1.0 / 3);
  EXPECT_DOUBLE_EQ(optim::schedule_factor(options, 3, 110), 1);
  EXPECT_LT(optim::schedule_factor(options, 4, 110), 1);
}

TEST(Schedule, BeginsWithTheCosineWhereThereIsNoWarmUp) {
  const optim::OptimOptions options{.warmup_fraction = 0, .final_lr_fraction = 0};
  EXPECT_DOUBLE_EQ(optim::schedule_factor(options, 1, 4), 0.5 * (1 + std::sqrt(0.5)));
  EXPECT_DOUBLE_EQ(optim::schedule_factor(options, 2, 4), 0.5);
  EXPECT_NEAR(optim::schedule_factor(options, 4, 4), 0, 1e-16);
}

TEST(Schedule, MayWarmUpLongerThanTheStageLasts) {
  const optim::OptimOptions options{.warmup_steps = 10};
  EXPECT_DOUBLE_EQ(optim::schedule_factor(options, 4, 4), 0.4);
}

}  // namespace
}  // namespace retort
