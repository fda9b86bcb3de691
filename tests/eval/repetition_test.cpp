#include "retort/eval/repetition.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace retort::eval {
namespace {

using Ids = std::vector<std::int32_t>;

Ids different(std::size_t count) {
  Ids ids(count);
  std::iota(ids.begin(), ids.end(), 100);
  return ids;
}

Ids followed_by(Ids ids, const Ids& period, std::size_t tokens) {
  for (std::size_t i = 0; i < tokens; ++i) ids.push_back(period[i % period.size()]);
  return ids;
}

TEST(EndsInLoop, FindsAnyPeriodThatFillsTheTail) {
  for (const std::size_t period : {1U, 2U, 7U, 8U, 40U, 64U}) {
    Ids of(period);
    std::iota(of.begin(), of.end(), 1);
    const auto least = std::max<std::size_t>(24, 3 * period);
    EXPECT_TRUE(ends_in_loop(followed_by(different(50), of, least))) << period;
    EXPECT_TRUE(ends_in_loop(followed_by(different(50), of, least + 5))) << period;
    EXPECT_FALSE(ends_in_loop(followed_by(different(50), of, least - 1))) << period;
  }
}

TEST(EndsInLoop, LeavesTextThatGoesOn) {
  EXPECT_FALSE(ends_in_loop({}));
  EXPECT_FALSE(ends_in_loop(different(500)));
  auto left = followed_by(different(10), {1, 2, 3}, 60);
  left.push_back(9);
  EXPECT_FALSE(ends_in_loop(left));
}

TEST(RepeatedShare, CountsNGramsThatStandEarlier) {
  EXPECT_EQ(repeated_share({}, 4), 0);
  EXPECT_EQ(repeated_share(different(3), 4), 0);
  EXPECT_EQ(repeated_share(different(30), 4), 0);
  // Of the 5 pairs of 1 2 1 2 1 2 there are two.
  EXPECT_DOUBLE_EQ(repeated_share(Ids{1, 2, 1, 2, 1, 2}, 2), 1 - 2.0 / 5);
}

}  // namespace
}  // namespace retort::eval
