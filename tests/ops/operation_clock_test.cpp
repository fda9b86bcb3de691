#include "retort/ops/operation_clock.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "retort/ops/elementwise.h"
#include "retort/ops/matrix_product.h"

namespace retort::ops {
namespace {

double seconds_of(const PerOperation& seconds, Operation operation) {
  return seconds[static_cast<std::size_t>(operation)];
}

TEST(OperationClock, CountsTheOperationsOfItsThreadWhileItLives) {
  const auto x_NK = at::ones({8, 16}), w_MK = at::ones({4, 16});
  ops::linear(x_NK, w_MK);  // no clock
  OperationClock clock;
  std::thread([&] { ops::linear(x_NK, w_MK); }).join();
  EXPECT_EQ(clock.take(), PerOperation{});
  ops::linear(x_NK, w_MK);
  rms_norm(x_NK, at::ones({16}), 1e-5);
  const auto seconds = clock.take();
  EXPECT_GT(seconds_of(seconds, Operation::product), 0);
  EXPECT_GT(seconds_of(seconds, Operation::norm), 0);
  EXPECT_EQ(seconds_of(seconds, Operation::attention), 0);
  EXPECT_EQ(clock.take(), PerOperation{}) << "taken once";
}

TEST(OperationClock, CountsAnOperationWithinAnotherAsTheOuterOne) {
  OperationClock clock;
  const double start = base::monotonic_seconds();
  {
    const InOperation outer(Operation::product);
    const InOperation inner(Operation::norm);
  }
  const auto seconds = clock.take();
  EXPECT_GT(seconds_of(seconds, Operation::product), 0);
  EXPECT_LE(std::accumulate(seconds.begin(), seconds.end(), 0.0), base::monotonic_seconds() - start);
  EXPECT_EQ(seconds_of(seconds, Operation::norm), 0);
}

TEST(OperationClock, GivesTheThreadBackToTheClockBefore) {
  OperationClock outer;
  {
    OperationClock inner;
    const InOperation one(Operation::swiglu);
  }
  EXPECT_EQ(outer.take(), PerOperation{});
  { const InOperation one(Operation::swiglu); }
  EXPECT_GT(seconds_of(outer.take(), Operation::swiglu), 0);
}

}  // namespace
}  // namespace retort::ops
