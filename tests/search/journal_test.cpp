#include "retort/search/journal.h"

#include <gtest/gtest.h>

#include <cmath>

#include "retort/base/error.h"
#include "retort/search/evolution.h"
#include "retort/search/greedy.h"
#include "retort/search/race.h"
#include "retort/search/tabu.h"
#include "search/problems.h"
#include "support/message_of.h"

namespace retort::search {
namespace {

using Entry = Journal::Entry;

// Rung r sees the objective with an error that shrinks with r.
Journal::Evaluate noisy(const test::Problem& problem, int* evaluations = nullptr) {
  return [&problem, evaluations](std::span<const State> states, std::int32_t rung) {
    std::vector<double> values;
    for (const auto& state : states) {
      double phase = 0;
      for (const auto level : state) phase = phase * 7 + level;
      values.push_back(problem.objective(state) + 0.1 * std::sin(phase) / (1 + 4 * rung));
      if (evaluations) ++*evaluations;
    }
    return values;
  };
}

Journal::Options racing(double budget) {
  return {.budget = budget,
          .rungs = 3,
          .charge = [](const State&, std::int32_t rung) { return std::pow(4.0, rung); },
          .on_entry = {}};
}

TEST(Journal, AnswersFromMemoryWithoutCharge) {
  const auto problem = test::random_problem(1, 2, 0);
  int evaluations = 0;
  Journal journal(problem.space, noisy(problem, &evaluations), racing(0));
  const State a{0, 1, 0, 0}, b{1, 0, 0, 0};
  const std::vector<State> states{a, b, a};
  const auto first = journal.objectives(states, 0), second = journal.objectives(states, 0);
  EXPECT_EQ(first, second);
  EXPECT_EQ(first[0], first[2]);
  EXPECT_EQ(evaluations, 2);
  EXPECT_EQ(journal.spent(), 2);
  journal.objective(a, 2);
  EXPECT_EQ(evaluations, 3);
  EXPECT_EQ(journal.spent(), 18);
}

TEST(Journal, EvaluatesOnlyWhatTheBudgetCovers) {
  const auto problem = test::random_problem(1, 2, 0);
  Journal journal(problem.space, problem.evaluate(), {.budget = 2, .rungs = 1, .charge = {}, .on_entry = {}});
  const std::vector<State> states{{0, 1, 0, 0}, {0, 2, 0, 0}, {0, 3, 0, 0}};
  EXPECT_THROW(journal.objectives(states, 0), BudgetSpent);
  EXPECT_EQ(journal.entries().size(), 2U);
  EXPECT_EQ(journal.spent(), 2);
}

TEST(Journal, KeepsTheBestFeasibleStateOfTheLastRung) {
  const auto problem = test::random_problem(1, 2, 0);
  Journal journal(problem.space, problem.evaluate(), racing(0));
  journal.objective(problem.space.whole(), 2);
  EXPECT_FALSE(journal.best()) << "nothing is removed";
  const State feasible{1, 3, 0, 0};
  ASSERT_TRUE(problem.space.feasible(feasible));
  journal.objective(feasible, 1);
  EXPECT_FALSE(journal.best());
  journal.objective(feasible, 2);
  ASSERT_TRUE(journal.best());
  EXPECT_EQ(journal.best()->state, feasible);
  EXPECT_EQ(journal.curve().size(), 1U);
}

TEST(Journal, RefusesAnObjectiveThatIsNotFinite) {
  const auto problem = test::random_problem(1, 2, 0);
  Journal journal(
      problem.space, [](auto states, auto) { return std::vector<double>(states.size(), NAN); }, racing(0));
  EXPECT_SAYS(test::message_of<base::ValidationError>([&] { journal.objective(problem.space.whole(), 0); }),
              "not finite");
}

TEST(Race, EndsWithTheFinalists) {
  const auto problem = test::random_problem(3, 3, 0.2);
  std::vector<State> states;
  test::for_all_feasible(problem.space, [&](const State& state) {
    if (states.size() < 16) states.push_back(state);
  });
  ASSERT_EQ(states.size(), 16U);
  Journal journal(problem.space, problem.evaluate(), racing(0));
  const auto ranked = race(journal, states, {.finalists = 1});
  ASSERT_EQ(ranked.size(), 1U);
  for (const auto& state : states) EXPECT_LE(ranked.front().objective, problem.objective(state));
  std::vector<std::size_t> at_rung(3, 0);
  for (const auto& entry : journal.entries()) ++at_rung[static_cast<std::size_t>(entry.rung)];
  EXPECT_EQ(at_rung, (std::vector<std::size_t>{16, 4, 1}));
}

struct Search {
  const char* name;
  void (*run)(Journal& journal);
};

class Resumed : public ::testing::TestWithParam<Search> {};

// Interrupted after any evaluation and started again with what was saved, a search takes the same path.
TEST_P(Resumed, AtAnyEvaluationItTakesTheSamePath) {
  const auto problem = test::random_problem(7, 4, 0.4);
  const auto search = [&](Journal& journal) { run_search([&] { GetParam().run(journal); }); };
  Journal undisturbed(problem.space, noisy(problem), racing(600));
  search(undisturbed);
  ASSERT_GT(undisturbed.entries().size(), 30U);
  struct Killed {};
  for (std::size_t kill = 0; kill < undisturbed.entries().size(); kill += 13) {
    std::vector<Entry> saved;
    auto options = racing(600);
    options.on_entry = [&](const Entry& entry) {
      if (saved.size() == kill) throw Killed{};
      saved.push_back(entry);
    };
    Journal first(problem.space, noisy(problem), options);
    EXPECT_THROW(search(first), Killed);
    ASSERT_EQ(saved.size(), kill);
    int evaluations = 0;
    Journal second(problem.space, noisy(problem, &evaluations), racing(600), saved);
    search(second);
    ASSERT_EQ(second.entries(), undisturbed.entries()) << kill;
    EXPECT_EQ(second.spent(), undisturbed.spent());
    EXPECT_EQ(static_cast<std::size_t>(evaluations), undisturbed.entries().size() - kill);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Searches, Resumed,
    ::testing::Values(Search{"tabu",
                             [](Journal& journal) {
                               auto proxy = Proxy::probed(journal.space(), journal, 2);
                               const auto start = greedy(journal);
                               tabu(journal, std::move(proxy), {start}, {.seed = 3});
                             }},
                      Search{"evolution", [](Journal& journal) { evolution(journal, {}, {.seed = 3}); }},
                      Search{"random", [](Journal& journal) { random_search(journal, 3, 1000); }}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace retort::search
