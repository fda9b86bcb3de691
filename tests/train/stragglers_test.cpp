#include "retort/train/stragglers.h"

#include <gtest/gtest.h>

namespace retort::train {
namespace {

// Steps of four ranks: `slow` takes `factor` times as long for a phase.
std::vector<Straggler> steps(Stragglers& stragglers, int count, int slow, double factor,
                             shard::Phase phase = shard::Phase::head) {
  std::vector<Straggler> found;
  for (int step = 0; step < count; ++step) {
    std::vector<shard::PerPhase> ranks(4);
    for (int rank = 0; rank < 4; ++rank) {
      ranks[static_cast<std::size_t>(rank)].fill(0.1 + 0.001 * ((step + rank) % 3));
      if (rank == slow) ranks[static_cast<std::size_t>(rank)][static_cast<std::size_t>(phase)] *= factor;
    }
    for (const auto& one : stragglers.add(ranks)) found.push_back(one);
  }
  return found;
}

TEST(Stragglers, AreToldOnceWithinFiftySteps) {
  Stragglers stragglers(4);
  const auto found = steps(stragglers, 50, 2, 2.0);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rank, 2);
  EXPECT_EQ(found[0].phase, shard::Phase::head);
  EXPECT_NE(described(found[0]).find("rank 2 is slow: head takes 0.2"), std::string::npos)
      << described(found[0]);
  EXPECT_TRUE(steps(stragglers, 100, 2, 2.0).empty());
}

TEST(Stragglers, AreThoseThatAreSlowInWorkOfTheirOwn) {
  Stragglers backward(4), exchange(4);
  const auto found = steps(backward, 50, 1, 2.0, shard::Phase::backward);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].phase, shard::Phase::backward);
  EXPECT_TRUE(steps(exchange, 100, 1, 2.0, shard::Phase::exchange).empty());
}

TEST(Stragglers, AreNotSeenInRanksThatAreAlike) {
  Stragglers stragglers(4);
  EXPECT_TRUE(steps(stragglers, 200, -1, 1.0).empty());
  EXPECT_TRUE(steps(stragglers, 200, 1, 1.3).empty());
}

TEST(Stragglers, AreNotSeenInOneSlowWindow) {
  Stragglers stragglers(4);
  EXPECT_TRUE(steps(stragglers, 20, 3, 10.0).empty());
  EXPECT_TRUE(steps(stragglers, 40, -1, 1.0).empty());
}

}  // namespace
}  // namespace retort::train
