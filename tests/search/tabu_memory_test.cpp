// How long Tabu search remembers, and when it forgets: a path of single states on a plain.
#include <gtest/gtest.h>

#include <map>

#include "retort/search/tabu.h"
#include "search/problems.h"

namespace retort::search {
namespace {

// Three of eight units are removed, so neighbours differ by one swap.  Every state but those on the path is
// bad, and each of the path is a neighbour of the one before it and the one behind it only.  The third step
// removes unit 0 again, which the first one had given back; who may not take it goes where no step leads
// back.
class TabuPath : public ::testing::Test {
 protected:
  static constexpr std::size_t kUnits = 8;
  static State removed(std::initializer_list<std::size_t> units) {
    State state(kUnits, 0);
    for (const auto unit : units) state[unit] = 1;
    return state;
  }
  State reached(std::int64_t tenure, std::int64_t iterations) const {
    Journal journal(space_,
                    [this](std::span<const Task> tasks, const Journal::Tell& tell) {
                      for (std::size_t i = 0; i < tasks.size(); ++i)
                        tell(i, {low_.contains(tasks[i].state) ? low_.at(tasks[i].state) : 9});
                    },
                    {});
    tabu(journal, Proxy(space_), {start_},
         {.iterations = iterations,
          .candidates = 1000,
          .tenure_min = tenure,
          .tenure_max = tenure,
          .stagnation = 0});
    return journal.best()->state;
  }
  const State start_ = removed({0, 1, 2}), first_ = removed({3, 1, 2}), second_ = removed({3, 4, 2}),
              third_ = removed({3, 4, 0}), fourth_ = removed({5, 4, 0});
  std::map<State, double> low_ = {{start_, 3.0}, {first_, 2.0}, {second_, 2.5}, {removed({3, 4, 6}), 8.0}};
  const Space space_{.units = std::vector<Unit>(kUnits, {"unit", {0, 1}}),
                     .least_removed = 3,
                     .most_removed = 3,
                     .removed_together = {},
                     .admits = {}};
};

TEST_F(TabuPath, ANewBestIsTakenAlthoughItIsTabu) {
  low_[third_] = 1;
  low_[fourth_] = 0;
  EXPECT_EQ(reached(10, 4), fourth_) << "the third step is tabu, but the best so far";
  low_[third_] = 2.2;
  EXPECT_EQ(reached(10, 4), first_) << "tabu, and no new best";
}

TEST_F(TabuPath, AUnitStaysForAsManyIterationsAsTheTenureSays) {
  low_[third_] = 2.2;
  low_[fourth_] = 1;
  EXPECT_EQ(reached(1, 4), fourth_) << "the second step is one iteration";
  EXPECT_EQ(reached(2, 4), first_);
}

}  // namespace
}  // namespace retort::search
