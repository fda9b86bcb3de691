#include "retort/model/common_blocks.h"

#include <gtest/gtest.h>

#include "support/reference_model.h"

namespace retort::model {
namespace {

using Numbers = std::vector<std::int64_t>;

Lineage with_blocks(const Numbers& blocks, std::int64_t original, std::int64_t hidden = 24) {
  Lineage lineage;
  for (const auto number : blocks) lineage.kept.blocks.push_back({number, {}, {}});
  lineage.teacher_blocks = original;
  lineage.teacher_hidden = hidden;
  return lineage;
}

TEST(CommonBlocks, AreFoundInTheModelThatTheyWereCutFrom) {
  const auto original = whole_lineage(test::config_of({.blocks = 6}));
  EXPECT_EQ(blocks_within(with_blocks({0, 3, 5}, 6), original), (Numbers{0, 3, 5}));
  EXPECT_EQ(blocks_within(original, original), (Numbers{0, 1, 2, 3, 4, 5}));
}

TEST(CommonBlocks, AreFoundInAModelThatWasCutItself) {
  EXPECT_EQ(blocks_within(with_blocks({0, 3, 5}, 6), with_blocks({0, 2, 3, 5}, 6)), (Numbers{0, 2, 3}));
}

TEST(CommonBlocks, AreNotFoundInAModelOfAnotherOriginal) {
  const auto student = with_blocks({0, 3, 5}, 6);
  EXPECT_FALSE(blocks_within(student, whole_lineage(test::config_of({.blocks = 8})))) << "deeper";
  EXPECT_FALSE(blocks_within(student, whole_lineage(test::config_of({.hidden = 32, .blocks = 6}))))
      << "wider";
  EXPECT_FALSE(blocks_within(student, with_blocks({0, 2, 5}, 6))) << "block 3 is gone there";
}

}  // namespace
}  // namespace retort::model
