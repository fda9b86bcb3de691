// The two cases of the reference: one that additive scores miss, one that greedy misses.
#include <gtest/gtest.h>

#include "retort/search/additive.h"
#include "retort/search/greedy.h"
#include "retort/search/sampling.h"
#include "retort/search/tabu.h"
#include "search/problems.h"

namespace retort::search {
namespace {

using test::golden_problem;

State members(const base::Json& indices, std::size_t units) {
  State state(units, 0);
  for (const auto& index : indices) state[index.get<std::size_t>()] = 1;
  return state;
}

// All neighbours, 60 iterations, tenures about the root of 16, no restarts.
TabuOptions settings_of_the_reference(std::uint64_t seed) {
  return {
      .seed = seed, .iterations = 60, .candidates = 1000, .tenure_min = 2, .tenure_max = 5, .stagnation = 0};
}

TEST(Golden, AdditiveScoresMissWhatGreedyFinds) {
  base::Json golden;
  const auto problem = golden_problem("tabu", golden);
  auto journal = problem.journal();
  const auto additive = least_additive(problem.space, Proxy::probed(problem.space, journal, 1));
  EXPECT_NEAR(problem.objective(additive), golden.at("additive").get<double>(), 1e-12);
  EXPECT_EQ(one_shot(problem.space, Proxy::probed(problem.space, journal, 1)), additive);
  EXPECT_NEAR(problem.objective(greedy(journal)), golden.at("greedy").get<double>(), 1e-12);
  EXPECT_NEAR(test::least_objective(problem), golden.at("brute").get<double>(), 1e-12);
}

TEST(Golden, TabuFindsTheOptimumFromTheTwentyStartsOfTheReference) {
  base::Json golden;
  const auto problem = golden_problem("tabu", golden);
  const auto units = problem.space.units.size();
  const auto optimum = members(golden.at("optimum"), units);
  ASSERT_EQ(golden.at("starts").size(), 20U);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto journal = problem.journal();
    tabu(journal, Proxy(problem.space), {members(golden.at("starts").at(seed), units)},
         settings_of_the_reference(seed));
    ASSERT_TRUE(journal.best());
    EXPECT_EQ(journal.best()->state, optimum) << seed;
    EXPECT_NEAR(journal.best()->objective, golden.at("brute").get<double>(), 1e-12);
  }
}

// A neighbour that is tabu wins most races here; the best of the others must still be found.
TEST(Golden, TabuFindsItWithRacesToo) {
  base::Json golden;
  const auto problem = golden_problem("tabu", golden);
  const auto units = problem.space.units.size();
  const auto optimum = members(golden.at("optimum"), units);
  int found = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Journal journal(problem.space, problem.evaluate(), {.rungs = {{{1.0}}, {{0.5, 0.5}}}});
    tabu(journal, Proxy(problem.space), {members(golden.at("starts").at(seed), units)},
         settings_of_the_reference(seed));
    found += journal.best()->state == optimum ? 1 : 0;
  }
  EXPECT_EQ(found, 20);
}

TEST(Golden, TabuFindsItWithShortCandidateListsToo) {
  base::Json golden;
  const auto problem = golden_problem("tabu", golden);
  const double optimum = golden.at("brute").get<double>();
  int found = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    base::Random random(seed, 3);
    auto journal = problem.journal();
    const auto start = random_state(problem.space, random);
    tabu(journal, Proxy::probed(problem.space, journal, 1), {start}, {.seed = seed, .iterations = 60});
    found += journal.best()->objective < optimum + 1e-12 ? 1 : 0;
  }
  EXPECT_GE(found, 18) << "of 20, with 20 of 60 neighbours evaluated in an iteration";
}

TEST(Golden, TabuLeavesTheTrapOfGreedy) {
  base::Json golden;
  const auto problem = golden_problem("tabu_trap", golden);
  auto journal = problem.journal();
  const auto trapped = greedy(journal);
  EXPECT_EQ(trapped, members(golden.at("greedy_set"), 4));
  EXPECT_NEAR(journal.best()->objective, golden.at("greedy").get<double>(), 1e-12);
  tabu(journal, Proxy::probed(problem.space, journal, 1), {trapped}, {.iterations = 20});
  EXPECT_EQ(journal.best()->state, members(golden.at("optimum"), 4));
  EXPECT_NEAR(journal.best()->objective, golden.at("brute").get<double>(), 1e-12);
}

}  // namespace
}  // namespace retort::search
