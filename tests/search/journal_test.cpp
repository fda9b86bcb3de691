#include "retort/search/journal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "retort/base/error.h"
#include "retort/search/additive.h"
#include "retort/search/best_states.h"
#include "retort/search/evolution.h"
#include "retort/search/greedy.h"
#include "retort/search/paired.h"
#include "retort/search/race.h"
#include "retort/search/staged.h"
#include "retort/search/tabu.h"
#include "search/problems.h"
#include "support/message_of.h"

namespace retort::search {
namespace {

using Entry = Journal::Entry;

// Each piece sees the objective with an error of its own, and all of them together see it as it is.
std::vector<double> noisy_pieces(const test::Problem& problem, const Task& task, double noise = 0.3) {
  double phase = 0;
  for (const auto level : task.state) phase = phase * 7 + level;
  std::vector<double> pieces;
  for (auto piece = task.first; piece < task.last; ++piece)
    pieces.push_back(problem.objective(task.state) +
                     noise * std::sin(phase + std::numbers::pi / 8 * static_cast<double>(piece * 5)));
  return pieces;
}

Journal::Evaluate noisy(const test::Problem& problem, int* evaluations = nullptr, double noise = 0.3) {
  return [&problem, evaluations, noise](std::span<const Task> tasks, const Journal::Tell& tell) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (evaluations) ++*evaluations;
      tell(i, noisy_pieces(problem, tasks[i], noise));
    }
  };
}

// 1, 4 and 16 pieces, each of which counts 1.
Journal::Options racing(double budget) {
  Journal::Options options{.budget = budget, .rungs = {}};
  for (const std::size_t pieces : {1U, 4U, 16U})
    options.rungs.push_back({std::vector<double>(pieces, 1 / static_cast<double>(pieces))});
  options.charge = [](const Task& task) { return static_cast<double>(task.last - task.first); };
  return options;
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
  EXPECT_EQ(journal.spent(), 17) << "the piece that was known is not paid for again";
  journal.objective(a, 1);
  EXPECT_EQ(journal.spent(), 17) << "what is known on more text is known on less";
}

TEST(Journal, SaysWhatAnObjectiveWillCost) {
  const auto problem = test::random_problem(1, 2, 0);
  Journal journal(problem.space, noisy(problem), racing(0));
  const State state{0, 1, 0, 0};
  double spent = 0;
  for (const auto& [rung, price] : {std::pair(1, 4.0), {0, 0.0}, {2, 12.0}, {2, 0.0}}) {
    EXPECT_EQ(journal.price(state, rung), price);
    journal.objective(state, rung);
    EXPECT_EQ(journal.spent(), spent += price);
  }
}

TEST(Journal, AnObjectiveIsTheWeightedSumOfThePieces) {
  const auto problem = test::random_problem(1, 2, 0);
  const auto evaluate = [](std::span<const Task> tasks, const Journal::Tell& tell) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const auto& task = tasks[i];
      std::vector<double> pieces;
      while (pieces.size() < task.last - task.first)
        pieces.push_back(static_cast<double>(task.first + pieces.size() + 1) * (task.state[0] + 1));
      tell(i, std::move(pieces));
    }
  };
  Journal journal(problem.space, evaluate, {.rungs = {{{2}}, {{1, 10, 100}}}});
  const State a{0, 0, 0, 0}, b{1, 0, 0, 0};
  EXPECT_EQ(journal.objective(a, 0), 2);
  EXPECT_EQ(journal.objective(a, 1), 321);
  EXPECT_EQ(journal.objective(b, 1), 642);
  EXPECT_EQ(journal.differences(b, a, 1), (std::vector<double>{1, 20, 300}));
  EXPECT_EQ(journal.differences(b, a, 0), std::vector<double>{2});
  EXPECT_EQ(journal.entries()[1].pieces, (std::vector<double>{2, 3})) << "what was not known before";
}

TEST(Journal, EvaluatesOnlyWhatTheBudgetCovers) {
  const auto problem = test::random_problem(1, 2, 0);
  Journal journal(problem.space, problem.evaluate(), {.budget = 2});
  const std::vector<State> states{{0, 1, 0, 0}, {0, 2, 0, 0}, {0, 3, 0, 0}};
  EXPECT_THROW(journal.objectives(states, 0), BudgetSpent);
  EXPECT_EQ(journal.entries().size(), 2U);
  EXPECT_EQ(journal.spent(), 2);
}

TEST(Journal, ChargesOtherWorkToo) {
  const auto problem = test::random_problem(1, 2, 0.1);
  auto journal = problem.journal(3);
  journal.spend(2);
  EXPECT_EQ(journal.spent(), 2);
  EXPECT_THROW(journal.spend(2), BudgetSpent);
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

TEST(Journal, AnObjectiveThatIsNotFiniteLosesUnlessItIsTheWholeModels) {
  const auto problem = test::random_problem(1, 2, 0);
  const State lost{1, 3, 0, 0}, fine{1, 4, 0, 0};
  ASSERT_TRUE(problem.space.feasible(lost));
  Journal journal(
      problem.space,
      [&](auto tasks, const auto& tell) {
        for (std::size_t i = 0; i < tasks.size(); ++i)
          tell(i, std::vector<double>(tasks[i].last - tasks[i].first, tasks[i].state == fine ? 1 : NAN));
      },
      racing(0));
  EXPECT_EQ(journal.objective(lost, 2), INFINITY);
  EXPECT_FALSE(journal.best());
  EXPECT_TRUE(best_states(journal, 3).empty());
  journal.objective(fine, 2);
  EXPECT_EQ(race(journal, {lost, fine}, {.survivors = 2}).size(), 1U) << "worse beyond chance";
  EXPECT_SAYS(test::message_of<base::ValidationError>([&] { journal.objective(problem.space.whole(), 0); }),
              "not finite");
}

class Race : public ::testing::Test {
 protected:
  Race() {
    test::for_all_feasible(problem_.space, [&](const State& state) {
      if (states_.size() < 16) states_.push_back(state);
    });
  }
  static std::vector<std::size_t> evaluated(const Journal& journal) {
    std::vector<std::size_t> at_rung(3, 0);
    for (const auto& entry : journal.entries()) ++at_rung[static_cast<std::size_t>(entry.rung)];
    return at_rung;
  }
  test::Problem problem_ = test::random_problem(3, 3, 0.2);
  std::vector<State> states_;
};

TEST_F(Race, FewerAndFewerGoOn) {
  ASSERT_EQ(states_.size(), 16U);
  Journal journal(problem_.space, noisy(problem_, nullptr, 50), racing(0));
  EXPECT_EQ(race(journal, states_, {.survivors = 1}).size(), 1U);
  EXPECT_EQ(evaluated(journal), (std::vector<std::size_t>{16, 4, 1}));
}

// Without noise the best of four pieces is the best, and nothing else is worth the other twelve.
TEST_F(Race, WhatIsWorseBeyondChanceGoesAtOnce) {
  Journal journal(problem_.space, problem_.evaluate(), racing(0));
  const auto ranked = race(journal, states_, {.survivors = 4});
  ASSERT_EQ(ranked.size(), 1U);
  for (const auto& state : states_) EXPECT_LE(ranked.front().objective, problem_.objective(state));
  EXPECT_EQ(evaluated(journal), (std::vector<std::size_t>{16, 8, 1}));
}

TEST_F(Race, HasRoomForEachStateOnce) {
  Journal journal(problem_.space, noisy(problem_, nullptr, 50), racing(0));
  states_.resize(4);
  const auto distinct = states_;
  for (int i = 0; i < 3; ++i) states_.insert(states_.begin(), distinct.begin(), distinct.end());
  EXPECT_EQ(race(journal, states_, {.survivors = 4}).size(), 4U);
}

TEST_F(Race, IsOverOnceAllAreWorseThanTheIncumbent) {
  auto incumbent = states_.front();
  for (const auto& state : states_)
    if (problem_.objective(state) < problem_.objective(incumbent)) incumbent = state;
  std::erase(states_, incumbent);
  Journal journal(problem_.space, noisy(problem_, nullptr, 1e-3), racing(0));
  journal.objective(incumbent, 2);
  const auto ranked = race(journal, states_, {.survivors = 1, .incumbent = &incumbent});
  ASSERT_FALSE(ranked.empty());
  EXPECT_EQ(ranked.front().rung, 1) << "three pieces are the fewest that say something";
  EXPECT_EQ(evaluated(journal)[2], 1U) << "the incumbent itself";
}

TEST(BestStates, AreTheFeasibleOnesWithTheLeastObjectiveOfTheLastRung) {
  const auto problem = test::random_problem(3, 3, 0.2);
  std::vector<State> states;
  test::for_all_feasible(problem.space, [&](const State& state) { states.push_back(state); });
  Journal journal(problem.space, noisy(problem, nullptr, 0.3), racing(0));
  journal.objectives(states, 1);
  EXPECT_TRUE(best_states(journal, 3).empty()) << "nothing was measured in full";
  journal.objective(problem.space.whole(), 2);
  const auto objectives = journal.objectives(states, 2);
  const auto best = best_states(journal, 5);
  ASSERT_EQ(best.size(), 5U);
  EXPECT_EQ(best.front(), journal.best()->state);
  auto sorted = objectives;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < best.size(); ++i)
    EXPECT_EQ(journal.objective(best[i], 2), sorted[i]) << "the whole model is better and too large";
}

// A start that looks bad on the first pieces only.
TEST(Tabu, BeginsFromTheBestStartOnAllPieces) {
  const auto problem = test::random_problem(3, 3, 0.2);
  std::vector<State> states;
  test::for_all_feasible(problem.space, [&](const State& state) { states.push_back(state); });
  const State unlucky = states[0], other = states[1];
  Journal journal(
      problem.space,
      [&](std::span<const Task> tasks, const Journal::Tell& tell) {
        for (std::size_t i = 0; i < tasks.size(); ++i) {
          const auto& task = tasks[i];
          std::vector<double> pieces;
          for (auto piece = task.first; piece < task.last; ++piece)
            pieces.push_back(task.state == unlucky ? (piece < 4 ? 9 + 0.01 * static_cast<double>(piece) : 0)
                                                   : 5 + 0.02 * static_cast<double>(piece % 3));
          tell(i, std::move(pieces));
        }
      },
      racing(0));
  TabuOptions options{.seed = 1};
  options.iterations = 0;
  tabu(journal, Proxy(problem.space), {unlucky, other}, options);
  ASSERT_TRUE(journal.best());
  EXPECT_EQ(journal.best()->state, unlucky);
}

// Student's t of 1, 2, 3, 4: mean 2.5, standard error of the mean 0.6455, t 3.87 with 3 degrees of freedom.
TEST(PairedDifference, IsStudentsTest) {
  const std::vector<double> clear{1, 2, 3, 4}, unclear{-1, 2, -3, 4}, few{5, 5};
  const auto difference = paired_difference(clear);
  EXPECT_DOUBLE_EQ(difference.value, 10);
  EXPECT_NEAR(difference.error, 4 * 0.6454972244, 1e-9);
  EXPECT_TRUE(difference.significant);
  EXPECT_FALSE(paired_difference(unclear).significant);
  EXPECT_FALSE(paired_difference(few).significant);
  const std::vector<double> below{-1, -2, -3, -4}, same{0, 0, 0};
  EXPECT_FALSE(paired_difference(below).significant) << "one-sided";
  EXPECT_FALSE(paired_difference(same).significant);
}

// Quantiles of the tables: two-sided 90 % and 99 %.
TEST(PairedDifference, HasTheDistributionOfTheTables) {
  struct Row {
    std::size_t degrees;
    double t90, t99;
  };
  for (const auto& [degrees, t90, t99] :
       {Row{1, 6.3138, 63.657}, Row{2, 2.9200, 9.9248}, Row{3, 2.3534, 5.8409}, Row{4, 2.1318, 4.6041},
        Row{9, 1.8331, 3.2498}, Row{30, 1.6973, 2.7500}}) {
    EXPECT_NEAR(student_t_probability(t90, degrees), 0.90, 2e-5) << degrees;
    EXPECT_NEAR(student_t_probability(t99, degrees), 0.99, 2e-5) << degrees;
  }
}

// Of samples without a difference, one in twenty is called one.
TEST(PairedDifference, ErrsAsOftenAsItSays) {
  for (const std::size_t pieces : {3U, 5U, 12U, 40U}) {
    int significant = 0;
    for (std::uint64_t trial = 0; trial < 20000; ++trial) {
      base::Random random(trial, pieces);
      std::vector<double> differences(pieces);
      for (auto& difference : differences) difference = random.next_normal();
      significant += paired_difference(differences).significant ? 1 : 0;
    }
    EXPECT_NEAR(significant, 1000, 130) << pieces << " pieces, four standard deviations";
  }
}

struct Search {
  const char* name;
  void (*run)(Journal& journal);
  std::size_t more_than = 30;  ///< evaluations, so that there is something to interrupt
};

class EverySearch : public ::testing::TestWithParam<Search> {
 protected:
  const test::Problem problem_ = test::random_problem(7, 4, 0.4);
  void search(Journal& journal) const {
    run_search([&] { GetParam().run(journal); });
  }
};

// Interrupted after any evaluation and started again with what was saved, a search takes the same path.
TEST_P(EverySearch, ResumedAtAnyEvaluationTakesTheSamePath) {
  Journal undisturbed(problem_.space, noisy(problem_), racing(600));
  search(undisturbed);
  ASSERT_GT(undisturbed.entries().size(), GetParam().more_than);
  struct Killed {};
  for (std::size_t kill = 0; kill < undisturbed.entries().size(); ++kill) {
    std::vector<Entry> saved;
    auto options = racing(600);
    options.on_entry = [&](const Entry& entry) { saved.push_back(entry); };
    const auto failing = [&, evaluate = noisy(problem_)](std::span<const Task> tasks,
                                                         const Journal::Tell& tell) {
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        if (saved.size() == kill) throw Killed{};
        evaluate({&tasks[i], 1},
                 [&](std::size_t, std::vector<double> pieces) { tell(i, std::move(pieces)); });
      }
    };
    Journal first(problem_.space, failing, options);
    EXPECT_THROW(search(first), Killed);
    ASSERT_EQ(saved.size(), kill) << "also in the middle of a batch";
    int evaluations = 0;
    Journal second(problem_.space, noisy(problem_, &evaluations), racing(600), saved);
    search(second);
    ASSERT_EQ(second.entries(), undisturbed.entries()) << kill;
    EXPECT_EQ(second.spent(), undisturbed.spent());
    EXPECT_EQ(static_cast<std::size_t>(evaluations), undisturbed.entries().size() - kill);
  }
}

// Every seventh state, by its levels, is not a number on its last pieces.
TEST_P(EverySearch, StatesThatAreNotFiniteLose) {
  const auto evaluate = [&](std::span<const Task> tasks, const Journal::Tell& tell) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      auto pieces = noisy_pieces(problem_, tasks[i]);
      std::int64_t sum = 0;
      for (std::size_t unit = 0; unit < tasks[i].state.size(); ++unit)
        sum += static_cast<std::int64_t>(unit + 1) * tasks[i].state[unit];
      if (sum % 7 == 3) pieces.back() = NAN;
      tell(i, std::move(pieces));
    }
  };
  std::vector<Entry> saved;
  auto options = racing(600);
  options.on_entry = [&](const Entry& entry) { saved.push_back(entry); };
  Journal journal(problem_.space, evaluate, options);
  search(journal);
  EXPECT_TRUE(
      std::any_of(saved.begin(), saved.end(), [](const Entry& one) { return std::isinf(one.objective); }));
  ASSERT_TRUE(journal.best());
  EXPECT_TRUE(std::isfinite(journal.best()->objective));
  Journal again(
      problem_.space, [](auto, const auto&) { FAIL() << "all is known"; }, racing(600), saved);
  search(again);
  EXPECT_EQ(again.entries(), journal.entries());
}

// Two evaluators share each batch; the second is faster, and each hands over its last task first.
TEST_P(EverySearch, IsTheSameWhateverTheOrderOfTheAnswers) {
  struct Killed {};
  std::size_t answers = 0, kill_after = 0;
  const auto by_two = [&](std::span<const Task> tasks, const Journal::Tell& tell) {
    for (const std::size_t evaluator : {1U, 0U})
      for (auto i = tasks.size(); i-- > 0;) {
        if (i % 2 != evaluator) continue;
        if (++answers == kill_after) throw Killed{};
        tell(i, noisy_pieces(problem_, tasks[i]));
      }
  };
  Journal one(problem_.space, noisy(problem_), racing(600)), two(problem_.space, by_two, racing(600));
  search(one);
  search(two);
  EXPECT_EQ(one.entries(), two.entries());
  EXPECT_EQ(one.curve(), two.curve());
  // Killed with answers to later tasks that are saved and to earlier ones that are not.
  for (std::size_t kill = 1; kill <= one.entries().size(); kill += 7) {
    std::vector<Entry> saved;
    auto options = racing(600);
    options.on_entry = [&](const Entry& entry) { saved.push_back(entry); };
    answers = 0, kill_after = kill;
    Journal first(problem_.space, by_two, options);
    EXPECT_THROW(search(first), Killed);
    ASSERT_EQ(saved.size(), kill - 1);
    answers = 0, kill_after = 0;
    Journal second(problem_.space, by_two, racing(600), saved);
    search(second);
    EXPECT_EQ(second.entries(), one.entries()) << kill;
    EXPECT_EQ(answers, one.entries().size() - saved.size()) << "nothing is asked twice";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Searches, EverySearch,
    ::testing::Values(Search{"tabu",
                             [](Journal& journal) {
                               auto proxy = Proxy::probed(journal.space(), journal, 2);
                               const auto start = greedy(journal);
                               tabu(journal, std::move(proxy), {start}, {.seed = 3});
                             }},
                      Search{"evolution", [](Journal& journal) { evolution(journal, {}, {.seed = 3}); }},
                      Search{"random", [](Journal& journal) { random_search(journal, 3, 1000); }},
                      Search{"greedy", [](Journal& journal) { greedy(journal); }},
                      Search{"greedy_with_budget",
                             [](Journal& journal) {
                               greedy(journal, Proxy::probed(journal.space(), journal, 2),
                                      {.candidates = 2, .budget = 400});
                             }},
                      Search{"additive",
                             [](Journal& journal) {
                               const auto proxy = Proxy::probed(journal.space(), journal, 8);
                               journal.objective(least_additive(journal.space(), proxy), journal.last_rung());
                             },
                             20},
                      Search{"staged",
                             [](Journal& journal) {
                               staged(journal, Proxy::probed(journal.space(), journal, 2),
                                      {.blocks = {{0, 1}, {2, 3}}, .channels = {1, 3}});
                             },
                             15},
                      Search{"staged_with_budget",
                             [](Journal& journal) {
                               staged(journal, Proxy::probed(journal.space(), journal, 2),
                                      {.blocks = {{0, 1}, {2, 3}, {4, 5}},
                                       .channels = {1, 3, 5, 7},
                                       .greedy = {.candidates = 2, .budget = 400}});
                             }}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace retort::search
