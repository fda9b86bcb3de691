// Which teacher block a student block is compared with.
#include "retort/loss/layer_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "retort/base/error.h"
#include "support/message_of.h"

namespace retort {
namespace {

TEST(LayerMap, OfRelativeDepthRoundsHalfUpAndEndsAtTheLastBlock) {
  const auto map = [](std::int64_t student, std::int64_t teacher) {
    return loss::layer_map(loss::LayerMap::relative_depth, student, teacher, {});
  };
  using Map = std::vector<std::int64_t>;
  EXPECT_EQ(map(4, 4), (Map{0, 1, 2, 3}));
  EXPECT_EQ(map(2, 4), (Map{1, 3}));
  EXPECT_EQ(map(2, 3), (Map{1, 2}));        // 1.5 rounds to 2
  EXPECT_EQ(map(4, 6), (Map{1, 2, 4, 5}));  // 1.5, 3, 4.5, 6
  EXPECT_EQ(map(3, 7), (Map{1, 4, 6}));     // 2.33, 4.67, 7
  EXPECT_EQ(map(1, 9), (Map{8}));
}

TEST(LayerMap, OfSurvivorsFollowsTheLineage) {
  using Map = std::vector<std::int64_t>;
  EXPECT_EQ(loss::layer_map(loss::LayerMap::surviving, 3, 8, {0, 3, 7}), (Map{0, 3, 7}));
  EXPECT_EQ(loss::layer_map(loss::LayerMap::before_survivor, 3, 8, {0, 3, 6}), (Map{2, 5, 7}));
}

TEST(LayerMap, NeverFallsAndEndsAtTheLastBlockForAllSizes) {
  for (std::int64_t teacher = 1; teacher <= 12; ++teacher)
    for (std::int64_t student = 1; student <= teacher; ++student) {
      const auto map = loss::layer_map(loss::LayerMap::relative_depth, student, teacher, {});
      SCOPED_TRACE(testing::Message() << student << " blocks of " << teacher);
      ASSERT_EQ(std::ssize(map), student);
      EXPECT_TRUE(std::ranges::is_sorted(map, std::ranges::less_equal())) << "two blocks share one";
      EXPECT_GE(map.front(), 0);
      EXPECT_EQ(map.back(), teacher - 1);
    }
}

// Only the first block of the teacher may have no block before it.
TEST(LayerMap, BeforeTheFirstSurvivorIsTheFirstBlock) {
  using Map = std::vector<std::int64_t>;
  EXPECT_EQ(loss::layer_map(loss::LayerMap::before_survivor, 3, 4, {0, 1, 2}), (Map{0, 1, 3}));
  EXPECT_EQ(loss::layer_map(loss::LayerMap::before_survivor, 1, 4, {2}), (Map{3}));
}

TEST(LayerMap, RefusesALineageOfAnotherTeacherAndADeeperStudent) {
  const auto refused = [](loss::LayerMap kind, std::int64_t student, std::int64_t teacher,
                          std::vector<std::int64_t> kept) {
    return test::message_of<base::UsageError>([&] { loss::layer_map(kind, student, teacher, kept); });
  };
  EXPECT_SAYS(refused(loss::LayerMap::relative_depth, 5, 4, {}), "5");
  EXPECT_SAYS(refused(loss::LayerMap::surviving, 3, 8, {0, 3}), "lineage");
  EXPECT_SAYS(refused(loss::LayerMap::before_survivor, 2, 4, {0, 4}), "lineage");
}

}  // namespace
}  // namespace retort
