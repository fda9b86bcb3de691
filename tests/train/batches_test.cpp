// Packed sequences as micro-batches.
#include "retort/train/batches.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace retort {
namespace {

data::Sequence sequence(std::int32_t first) {
  return {.ids = {first, first + 1, first + 2},
          .targets = {first + 1, data::kNoTarget, first + 3},
          .starts = {0, 2}};
}

TEST(Batches, TheLastMayBeSmaller) {
  const std::vector<data::Sequence> sequences = {sequence(10), sequence(20), sequence(30)};
  const auto batches = train::make_micro_batches(sequences, 2, at::kCPU);
  ASSERT_EQ(batches.size(), 2U);
  EXPECT_EQ(batches[0].tokens(), 6);
  EXPECT_TRUE(at::equal(batches[1].ids_N, at::tensor({30, 31, 32}, at::kLong)));
  EXPECT_TRUE(train::make_micro_batches({}, 2, at::kCPU).empty());
}

}  // namespace
}  // namespace retort
