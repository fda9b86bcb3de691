// Sequences of token ids as one row.
#include "retort/model/packed_text.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace retort {
namespace {

using Numbers = std::vector<std::int64_t>;

struct Sequence {
  std::vector<std::int32_t> ids, targets, starts;
};

Sequence sequence(std::int32_t first) {
  return {.ids = {first, first + 1, first + 2}, .targets = {first + 1, -1, first + 3}, .starts = {0, 2}};
}

TEST(PackedText, HasTheBoundsOfSequencesAndDocuments) {
  const auto packed = model::packed_text(std::vector{sequence(10), sequence(20)}, at::kCPU);

  EXPECT_EQ(packed.bounds, (Numbers{0, 3, 6}));
  EXPECT_EQ(packed.starts, (Numbers{0, 2, 3, 5, 6}));
  EXPECT_EQ(packed.tokens(), 6);
  EXPECT_EQ(packed.sequences(), 2);
  const auto starts = packed.sequence_starts();
  EXPECT_EQ(Numbers(starts.begin(), starts.end()), (Numbers{0, 3}));
}

TEST(PackedText, KeepsIdsAndTargetsInOrderAndCountsTargets) {
  const auto packed = model::packed_text(std::vector{sequence(10), sequence(20)}, at::kCPU);

  EXPECT_TRUE(at::equal(packed.ids_N, at::tensor({10, 11, 12, 20, 21, 22}, at::kLong)));
  EXPECT_TRUE(at::equal(packed.targets_N, at::tensor({11, -1, 13, 21, -1, 23}, at::kLong)));
  EXPECT_EQ(packed.num_targets, 4);
}

TEST(PackedText, SequencesMayHaveDifferentLengths) {
  const Sequence longer = {{1, 2, 3, 4}, {2, 3, 4, 5}, {0}};
  const Sequence shorter = {{7}, {-1}, {0}};

  const auto packed = model::packed_text(std::vector{longer, shorter, sequence(10)}, at::kCPU);

  EXPECT_EQ(packed.bounds, (Numbers{0, 4, 5, 8}));
  EXPECT_EQ(packed.starts, (Numbers{0, 4, 5, 7, 8}));
  EXPECT_EQ(packed.num_targets, 6);
}

TEST(PackedText, OfNothingIsEmpty) {
  const auto packed = model::packed_text(std::vector<Sequence>(), at::kCPU);

  EXPECT_EQ(packed.tokens(), 0);
  EXPECT_EQ(packed.sequences(), 0);
  EXPECT_EQ(packed.ids_N.numel(), 0);
}

}  // namespace
}  // namespace retort
