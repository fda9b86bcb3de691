// Searches on problems small enough to go through all states.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "retort/base/error.h"
#include "retort/search/additive.h"
#include "retort/search/evolution.h"
#include "retort/search/greedy.h"
#include "retort/search/neighbourhood.h"
#include "retort/search/sampling.h"
#include "retort/search/staged.h"
#include "retort/search/tabu.h"
#include "search/problems.h"
#include "support/message_of.h"

namespace retort::search {
namespace {

using test::least_objective;
using test::random_problem;

Proxy exact_additions(const test::Problem& problem) {
  Proxy proxy(problem.space);
  for (std::size_t unit = 0; unit < problem.additions.size(); ++unit)
    for (std::size_t level = 0; level < problem.additions[unit].size(); ++level)
      proxy.set(unit, static_cast<std::int32_t>(level), problem.additions[unit][level]);
  return proxy;
}

TEST(LeastAdditive, IsTheOptimumWhereUnitsDoNotInteract) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto problem = random_problem(seed, 3, 0);
    const auto state = least_additive(problem.space, exact_additions(problem));
    EXPECT_TRUE(problem.space.feasible(state));
    EXPECT_NEAR(problem.objective(state), least_objective(problem), 1e-12) << seed;
  }
}

// The optimum of the sums is no model; the next best that is one differs from it in a unit or two.
TEST(LeastAdditive, IsAdmitted) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    auto problem = random_problem(seed, 3, 0);
    const auto scores = exact_additions(problem);
    const auto optimum = least_additive(problem.space, scores);
    problem.space.admits = [&](const State& state) { return state != optimum; };
    const auto state = least_additive(problem.space, scores);
    EXPECT_NE(state, optimum);
    EXPECT_TRUE(problem.space.feasible(state)) << seed;
  }
}

// Of sums that share no divisor there are more than a table holds; the bounds are as narrow as a search's.
TEST(LeastAdditive, IsTheOptimumOfManySums) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    auto problem = random_problem(seed, 3, 0);
    auto& space = problem.space;
    std::int64_t all = 0;
    for (auto& unit : space.units) {
      for (auto& removed : unit.removed)
        removed *= 1'000'003 + static_cast<std::int64_t>(unit.name.size() + seed);
      all += unit.removed.back();
    }
    ASSERT_LT(common_divisor(space), all >> 20);
    space.least_removed = all * 395 / 1000;
    space.most_removed = all * 4 / 10;
    const auto state = least_additive(space, exact_additions(problem));
    EXPECT_TRUE(space.feasible(state));
    EXPECT_NEAR(problem.objective(state), least_objective(problem), 1e-12) << seed;
  }
}

// Levels of one channel, more than 16 bits count.
TEST(LeastAdditive, ChoosesAmongManyLevels) {
  Space space{.units = {{"mlp 0", {}}, {"mlp 1", {}}},
              .least_removed = 43'000,
              .most_removed = 43'010,
              .removed_together = {},
              .admits = {}};
  for (auto& unit : space.units)
    for (std::int64_t channels = 0; channels <= 33'000; ++channels) unit.removed.push_back(channels);
  Proxy proxy(space);
  for (std::int32_t level = 0; level <= 33'000; ++level) {
    proxy.set(0, level, level);
    proxy.set(1, level, 2.0 * level);
  }
  EXPECT_EQ(least_additive(space, proxy), (State{33'000, 10'000}));
}

// The cheapest small units first, then nothing fits between them and the bounds: two are given back for a
// large one.
TEST(Space, KnowsTheSumsBesideItsBound) {
  Space space{.units = {{"a", {0, 30, 60}}, {"b", {0, 100}}},
              .least_removed = 70,
              .most_removed = 90,
              .removed_together = {},
              .admits = {}};
  const auto reach = search::reach(space);
  ASSERT_TRUE(reach);
  EXPECT_EQ(reach->below, 60);
  EXPECT_EQ(reach->from, 100);
  space.least_removed = 0;
  EXPECT_EQ(search::reach(space)->from, 0);
  space.least_removed = 161;
  EXPECT_EQ(search::reach(space)->below, 160);
  EXPECT_FALSE(search::reach(space)->from);
  space.units.push_back({"c", {0, std::int64_t{1} << 40, (std::int64_t{1} << 40) + 1}});
  EXPECT_FALSE(search::reach(space)) << "too many sums";
}

TEST(OneShot, GivesBackWhereNothingFits) {
  Space space;
  for (int i = 0; i < 2; ++i) space.units.push_back({"small", {0, 10}});
  for (int i = 0; i < 3; ++i) space.units.push_back({"large", {0, 30}});
  space.least_removed = 60;
  space.most_removed = 62;
  Proxy scores(space);
  for (std::size_t unit = 0; unit < 5; ++unit)
    scores.set(unit, 1, unit < 2 ? 0.1 : 10 + static_cast<double>(unit));
  const auto state = one_shot(space, scores);
  EXPECT_TRUE(space.feasible(state));
  EXPECT_EQ(space.removed(state), 60);
}

TEST(Proxy, ProbesAndLearns) {
  const auto problem = random_problem(1, 2, 0);
  auto journal = problem.journal();
  const auto all = Proxy::probed(problem.space, journal, 100);
  for (std::size_t unit = 0; unit < problem.additions.size(); ++unit)
    for (std::int32_t level = 0; level <= problem.space.highest(unit); ++level)
      EXPECT_NEAR(all.addition(unit, level), problem.additions[unit][static_cast<std::size_t>(level)], 1e-12);
  auto ends = Proxy::probed(problem.space, journal, 1);
  EXPECT_NEAR(ends.addition(1, 2), problem.additions[1][4] * 60 / 130, 1e-12) << "interpolated";
  // The additions are squares of what is removed: a parabola through half and all of it meets them.
  const auto bent = Proxy::probed(problem.space, journal, 2);
  for (std::int32_t level = 1; level <= 4; ++level)
    EXPECT_NEAR(bent.addition(1, level), problem.additions[1][static_cast<std::size_t>(level)], 1e-12);
  const State from{0, 2, 0, 0}, to{1, 0, 0, 0};
  const double before = ends.difference(from, to);
  ends.learn({{from, to, before + 1}});
  EXPECT_NEAR(ends.difference(from, to), before + 1 - 1.0 / 32, 1e-12) << "half of the error, five times";
  EXPECT_EQ(ends.addition(1, 0), 0);
}

// Single units say little about this problem, and pairs all: what was measured has to tell about what was
// not.
TEST(Proxy, LearnsWhatPairsAdd) {
  base::Json golden;
  const auto problem = test::golden_problem("tabu", golden);
  auto journal = problem.journal();
  const auto single = Proxy::probed(problem.space, journal, 1);
  auto learned = single;
  base::Random random(0, 0);
  const auto start = random_state(problem.space, random);
  const auto measured = [&](const State& state) {
    return problem.objective(state) - problem.objective(start);
  };
  for (int i = 0; i < 200; ++i) {
    const auto state = random_state(problem.space, random);
    learned.learn({{start, state, measured(state)}});
  }
  double error_single = 0, error_learned = 0;
  for (int i = 0; i < 100; ++i) {
    const auto state = random_state(problem.space, random);
    error_single += std::pow(single.difference(start, state) - measured(state), 2);
    error_learned += std::pow(learned.difference(start, state) - measured(state), 2);
  }
  EXPECT_LT(error_learned, error_single / 20);
}

TEST(Neighbours, AreFeasibleDistinctAndComplete) {
  base::Json golden;
  const auto swaps = test::golden_problem("tabu", golden);
  base::Random random(1, 1);
  const auto state = random_state(swaps.space, random);
  const auto found = neighbours(swaps.space, state, Proxy(swaps.space));
  EXPECT_EQ(found.size(), 60U) << "k (n - k) swaps";

  const auto problem = random_problem(2, 4, 0);
  const auto start = random_state(problem.space, random);
  const auto around = neighbours(problem.space, start, exact_additions(problem));
  EXPECT_GT(around.size(), 15U);
  for (std::size_t i = 0; i < around.size(); ++i) {
    EXPECT_TRUE(problem.space.feasible(around[i]));
    EXPECT_NE(around[i], start);
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(around[i], around[j]);
  }
}

TEST(Greedy, EndsWithinTheBounds) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto problem = random_problem(seed, 4, 0.2);
    auto journal = problem.journal();
    const auto state = greedy(journal);
    EXPECT_TRUE(problem.space.feasible(state));
    EXPECT_EQ(journal.best()->objective, problem.objective(state));
  }
}

TEST(Greedy, IsCheapWithShortlistsAndLargeSteps) {
  double all = 0, few = 0, chance = 0;
  std::size_t all_evaluations = 0, few_evaluations = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto problem = random_problem(seed, 6, 0.2);
    auto thorough = problem.journal(), lazy = problem.journal();
    all += problem.objective(greedy(thorough));
    const auto state = greedy(lazy, Proxy::probed(problem.space, lazy, 2), {.candidates = 3, .steps = 6});
    EXPECT_TRUE(problem.space.feasible(state));
    few += problem.objective(state);
    base::Random random(seed, 0);
    chance += problem.objective(random_state(problem.space, random));
    all_evaluations += thorough.entries().size();
    few_evaluations += lazy.entries().size();
  }
  EXPECT_LT(few - all, 0.25 * (chance - all)) << "and nearly as good, measured by chance";
  EXPECT_LT(few_evaluations, all_evaluations * 7 / 10);
}

// Four blocks of an attention and an MLP in steps; block 2 is the cheapest, MLP 0 begins with an inactive
// step.
TEST(Staged, RemovesBlocksThenChannelsAndNoOtherAttention) {
  test::Problem problem;
  const std::vector<double> cost{3, 4, 1, 5};
  StagedOptions options{.start = State(8, 0)};
  for (std::size_t block = 0; block < 4; ++block) {
    problem.space.units.push_back({"attention", {0, 40}});
    problem.space.units.push_back({"MLP", {0, 20, 40, 60, 80}});
    // An attention alone would be the cheapest step of all.
    problem.additions.push_back({0, 0.1 * cost[block]});
    problem.additions.push_back({0, cost[block], 2 * cost[block], 4 * cost[block], 8 * cost[block]});
    options.blocks.push_back({2 * block, 2 * block + 1});
    options.channels.push_back(2 * block + 1);
  }
  problem.additions[1][1] = 0;
  problem.pairs.assign(8, std::vector<double>(8, 0));
  problem.space.least_removed = 200;
  problem.space.most_removed = 220;
  options.start[1] = 1;
  auto journal = problem.journal();
  const auto state = staged(journal, Proxy(problem.space), options);
  EXPECT_EQ(state, (State{0, 1, 0, 2, 1, 4, 0, 1})) << "20 + 120 of block 2, then 4, 4 and 5 by channels";
  EXPECT_EQ(journal.best()->state, state);

  options.channels = {};  // as where only whole parts can go
  options.start = {};
  EXPECT_TRUE(problem.space.feasible(staged(journal, Proxy(problem.space), options)));
}

TEST(Tabu, FindsTheBestOfAllStatesInMostCasesAndIsNeverWorseThanItsStart) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto problem = random_problem(seed, 3, 0.5);  // 1000 states
    auto journal = problem.journal(300);
    State start;
    run_search([&] {
      start = greedy(journal);
      tabu(journal, Proxy::probed(problem.space, journal, 2), {start}, {.seed = seed});
    });
    EXPECT_LE(journal.best()->objective, problem.objective(start));
    EXPECT_TRUE(problem.space.feasible(journal.best()->state));
    EXPECT_LE(journal.spent(), 300);
    found += journal.best()->objective <= least_objective(problem) + 1e-12 ? 1 : 0;
  }
  EXPECT_GE(found, 16);
}

// Around the better start all is worse for ever; from the other one, three steps down lead to the optimum.
TEST(Tabu, GoesBackToItsEliteWhereNothingImproves) {
  constexpr std::size_t kUnits = 24, kHalf = kUnits / 2, kSteps = 3;
  Space space{.units = std::vector<Unit>(kUnits, {"unit", {0, 1}}),
              .least_removed = kHalf,
              .most_removed = kHalf,
              .removed_together = {},
              .admits = {}};
  State trap(kUnits, 0), optimum(kUnits, 0);
  for (std::size_t unit = 0; unit < kHalf; ++unit) trap[unit] = optimum[2 * unit] = 1;
  std::map<State, double> low = {{trap, 0.5}};
  State on_the_way = optimum;
  for (std::size_t step = 0; step <= kSteps; ++step) {
    low[on_the_way] = 0.2 * static_cast<double>(step);
    if (step < kSteps) std::swap(on_the_way[2 * step], on_the_way[2 * step + 1]);
  }
  const auto found = [&](std::int64_t stagnation) {
    Journal journal(space,
                    [&](std::span<const Task> tasks, const Journal::Tell& tell) {
                      for (std::size_t i = 0; i < tasks.size(); ++i)
                        tell(i, {low.contains(tasks[i].state) ? low.at(tasks[i].state) : 1});
                    },
                    {});
    tabu(journal, Proxy(space), {trap, on_the_way},
         {.seed = 1, .iterations = 30, .candidates = 1000, .stagnation = stagnation});
    return journal.best()->state;
  };
  EXPECT_EQ(found(5), optimum);
  EXPECT_EQ(found(0), trap);
}

TEST(Baselines, StayFeasibleAndKeepTheirBest) {
  const auto problem = random_problem(5, 4, 0.3);
  double least = 1e300;
  auto journal = problem.journal(400);
  run_search([&] { random_search(journal, 1, 1000000); });
  for (const auto& entry : journal.entries()) {
    EXPECT_TRUE(problem.space.feasible(entry.state));
    least = std::min(least, entry.objective);
  }
  EXPECT_EQ(journal.best()->objective, least);
  EXPECT_EQ(journal.spent(), 400);

  auto evolved = problem.journal(400);
  run_search([&] { evolution(evolved, {}, {.seed = 1}); });
  EXPECT_LT(evolved.best()->objective, journal.best()->objective) << "selection helps";
  for (const auto& entry : evolved.entries()) EXPECT_TRUE(problem.space.feasible(entry.state));
}

TEST(RandomSearch, EndsWhereAllThatThereIsWasDrawn) {
  auto problem = random_problem(3, 2, 0.3);
  std::int64_t drawn = 0;
  problem.space.admits = [&](const State&) {
    ++drawn;
    return true;
  };
  auto journal = problem.journal();
  run_search([&] { random_search(journal, 1, 1'000'000); });
  EXPECT_GE(journal.entries().size(), 1U);
  EXPECT_LT(drawn, 10'000);
}

TEST(Bounds, ThatNothingMeetsAreRefused) {
  auto problem = random_problem(1, 2, 0);
  problem.space.least_removed = problem.space.most_removed = 71;
  EXPECT_SAYS(
      test::message_of<base::UsageError>([&] { least_additive(problem.space, Proxy(problem.space)); }), "71");
  EXPECT_SAYS(test::message_of<base::UsageError>([&] { one_shot(problem.space, Proxy(problem.space)); }),
              "71");
  auto journal = problem.journal();
  EXPECT_SAYS(test::message_of<base::UsageError>([&] { greedy(journal); }), "71");
  base::Random random(1, 1);
  EXPECT_SAYS(test::message_of<base::UsageError>([&] { random_state(problem.space, random); }), "71");
  problem.space.most_removed = problem.space.least_removed = 1000;
  EXPECT_SAYS(test::message_of<base::UsageError>([&] { validate(problem.space); }), "1000");
  problem.space.units.clear();
  EXPECT_SAYS(test::message_of<base::UsageError>([&] { validate(problem.space); }), "units");
}

}  // namespace
}  // namespace retort::search
