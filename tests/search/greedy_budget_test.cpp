// What greedy makes of a budget.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "retort/search/compared.h"
#include "retort/search/greedy.h"
#include "search/problems.h"

namespace retort::search {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// Two rungs; the first of the four pieces sees another problem than all of them together.
class TwoRungs {
 public:
  explicit TwoRungs(std::uint64_t seed)
      : problem_(test::random_problem(seed, 4, 0.3)), other_(test::random_problem(seed + 100, 4, 0.3)) {}
  const test::Problem& problem() const { return problem_; }
  Journal journal() const {
    return {problem_.space,
            [this](std::span<const Task> tasks, const Journal::Tell& tell) {
              for (std::size_t i = 0; i < tasks.size(); ++i) tell(i, pieces(tasks[i]));
            },
            {.rungs = {{{1.0}}, {{0.25, 0.25, 0.25, 0.25}}},
             .charge = [](const Task& task) { return static_cast<double>(task.last - task.first); }}};
  }

 private:
  std::vector<double> pieces(const Task& task) const {
    const double first = other_.objective(task.state), all = problem_.objective(task.state);
    std::vector<double> pieces;
    for (auto piece = task.first; piece < task.last; ++piece)
      pieces.push_back(piece == 0 ? first : (4 * all - first) / 3);
    return pieces;
  }
  test::Problem problem_, other_;
};

TEST(GreedyBudget, WithoutEndComparesAllStepsOnAllPieces) {
  int others = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const TwoRungs rungs(seed);
    auto plain = rungs.problem().journal(), journal = rungs.journal(), cheap = rungs.journal();
    const auto expected = greedy(plain);
    EXPECT_EQ(greedy(journal, Proxy(journal.space()), {.candidates = 2, .budget = kUnlimited}), expected);
    others += greedy(cheap) == expected ? 0 : 1;
  }
  EXPECT_GE(others, 4) << "the first piece alone leads elsewhere";
}

TEST(GreedyBudget, IsSharedByTheSteps) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const TwoRungs rungs(seed);
    auto unlimited = rungs.journal(), fewest = rungs.journal();
    greedy(unlimited, Proxy(unlimited.space()), {.candidates = 2, .budget = kUnlimited});
    greedy(fewest, Proxy(fewest.space()), {.candidates = 2});
    ASSERT_GT(unlimited.spent(), 4 * fewest.spent());
    for (const double part : {0.5, 0.7}) {
      auto journal = rungs.journal();
      const double budget = part * unlimited.spent();
      EXPECT_TRUE(rungs.problem().space.feasible(
          greedy(journal, Proxy(journal.space()), {.candidates = 2, .budget = budget})));
      EXPECT_LE(journal.spent(), budget + 4) << "and the result on all pieces";
      EXPECT_GE(journal.spent(), 0.7 * budget);
    }
  }
}

TEST(GreedyBudget, ThatIsUsedUpLeavesTheFewestCandidates) {
  const TwoRungs rungs(1);
  auto fewest = rungs.journal(), journal = rungs.journal();
  const auto expected = greedy(fewest, Proxy(fewest.space()), {.candidates = 2});
  EXPECT_EQ(greedy(journal, Proxy(journal.space()), {.candidates = 2, .budget = 0}), expected);
  EXPECT_EQ(journal.entries(), fewest.entries());
}

// Six steps and 1 + 6 + 3 (2 + 1) pieces: all on the first piece, the two best of them on the other three.
TEST(Compared, TheBetterStepsMeetOnMorePieces) {
  const TwoRungs rungs(2);
  auto journal = rungs.journal();
  const auto& space = rungs.problem().space;
  std::vector<State> steps;
  for (std::size_t unit = 0; unit < 6; ++unit) {
    steps.push_back(space.whole());
    ++steps.back()[unit];
  }
  const auto order = [&](std::vector<Step>& all) { order_by_rise(space, space.whole(), all); };
  const auto found = compared(journal, space.whole(), steps, {.rung = 0, .share = 16}, order);
  EXPECT_EQ(journal.spent(), 16);
  ASSERT_EQ(found.size(), 2U);
  const auto score = [&](const State& state) {
    return (rungs.problem().objective(state) - rungs.problem().objective(space.whole())) /
           static_cast<double>(space.removed(state));
  };
  EXPECT_LE(score(found[0].state), score(found[1].state)) << "by all pieces";
  EXPECT_EQ(compared(journal, space.whole(), steps, {.rung = 0, .share = 0}, order).size(), 6U);
  EXPECT_EQ(compared(journal, space.whole(), steps, {.rung = 0, .share = 11}, order).size(), 5U)
      << "what is known is not paid for again";
}

}  // namespace
}  // namespace retort::search
