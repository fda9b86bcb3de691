#include "retort/train/stragglers.h"

#include <gtest/gtest.h>

#include "support/ranks.h"
#include "train/training.h"

namespace retort::train {
namespace {

// Steps of ranks with so many sequences each: `slow` takes `factor` times as long for a phase.
std::vector<Straggler> steps(Stragglers& stragglers, int count, int slow, double factor,
                             shard::Phase phase = shard::Phase::head,
                             const std::vector<int>& sequences = {1, 1, 1, 1}) {
  std::vector<Straggler> found;
  for (int step = 0; step < count; ++step) {
    std::vector<RankStep> ranks(sequences.size());
    for (int rank = 0; rank < std::ssize(ranks); ++rank) {
      auto& [own, seconds] = ranks[static_cast<std::size_t>(rank)];
      own = sequences[static_cast<std::size_t>(rank)];
      seconds.fill(own * (0.1 + 0.001 * ((step + rank) % 3)) + 1e-5);
      if (rank == slow) seconds[static_cast<std::size_t>(phase)] *= factor;
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

// Ranks without sequences take no time, which makes none of the others slow.
TEST(Stragglers, AreSoughtAmongRanksWithSequences) {
  for (const auto& sequences : std::vector<std::vector<int>>{{0, 1}, {0, 1, 0, 1}, {0, 0, 0, 2}, {1, 2, 2}}) {
    Stragglers stragglers(static_cast<int>(sequences.size()));
    EXPECT_TRUE(steps(stragglers, 100, -1, 1.0, shard::Phase::head, sequences).empty());
  }
  Stragglers stragglers(4);
  const auto found = steps(stragglers, 50, 3, 2.0, shard::Phase::head, {0, 2, 0, 1});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].rank, 3);
  EXPECT_NEAR(found[0].seconds, 0.2, 0.01);
}

using StragglersInTraining = test::TrainingTest;

TEST_F(StragglersInTraining, AreNotSeenWhereOneOfTwoRanksHasNoSequence) {
  test::Given given;
  given.options = test::small_options(0);
  given.options.batch = {.sequences = 1, .accumulate = 1, .wave = 0};
  given.options.packing.sequence_length = 1024;  // so that work is more than a twentieth of a step
  given.options.tokens = 50 * given.options.packing.sequence_length;
  given.sources = {source("one", test::made_up_documents(200))};
  test::on_ranks(
      2,
      [&](comm::Group& world) {
        test::Training training(given, place(base::join("rank-", world.rank())), world);
        test::Witness witness;
        EXPECT_TRUE(training.run(witness).finished);
        EXPECT_TRUE(witness.warnings.empty()) << witness.warnings.front();
      },
      false);
}

TEST(Stragglers, AreNotSeenInOneSlowWindow) {
  Stragglers stragglers(4);
  EXPECT_TRUE(steps(stragglers, 20, 3, 10.0).empty());
  EXPECT_TRUE(steps(stragglers, 40, -1, 1.0).empty());
}

}  // namespace
}  // namespace retort::train
