// Packed sequences as micro-batches.
#include "retort/train/batches.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace retort {
namespace {

using Numbers = std::vector<std::int64_t>;

data::Sequence sequence(std::int32_t first) {
  return {.ids = {first, first + 1, first + 2},
          .targets = {first + 1, data::kNoTarget, first + 3},
          .starts = {0, 2}};
}

TEST(Batches, JoinSequencesWithTheirBoundsDocumentsAndTargets) {
  const std::vector<data::Sequence> sequences = {sequence(10), sequence(20)};
  const auto batch = train::make_micro_batch(sequences, at::kCPU);
  EXPECT_TRUE(at::equal(batch.ids_N, at::tensor({10, 11, 12, 20, 21, 22}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.targets_N, at::tensor({11, -1, 13, 21, -1, 23}, at::kLong)));
  EXPECT_EQ(batch.bounds, (Numbers{0, 3, 6}));
  EXPECT_EQ(batch.starts, (Numbers{0, 2, 3, 5, 6}));
  EXPECT_EQ(batch.num_targets, 4);
  EXPECT_EQ(batch.tokens(), 6);
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
