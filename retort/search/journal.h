#pragma once
// Every evaluation of a search, in order: its memory, its meter and its saved state.
//
// A search is a plain function that asks the journal for objectives.  What was evaluated before is answered
// from memory and costs nothing; the rest goes to the evaluator, in batches whose members do not depend on
// each other.  A search draws its random numbers from (seed, iteration, draw) alone, so running it again with
// the journal of an interrupted run takes the same path to where it stopped, and goes on.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "retort/search/space.h"

namespace retort::search {

/// Thrown through a search when the next evaluation would go beyond its budget; run_search catches it.
struct BudgetSpent {};

class Journal {
 public:
  struct Entry {
    State state;
    std::int32_t rung = 0;
    double objective = 0;
    double charge = 0;
    bool operator==(const Entry&) const = default;
  };
  struct Options {
    double budget = 0;       ///< in the unit of `charge`; 0: without limit
    std::int32_t rungs = 1;  ///< fidelities, from 0, the cheapest, to rungs - 1, at which results count
    /// What an evaluation counts, whatever a cache saves: searches with and without it take one path.
    std::function<double(const State&, std::int32_t rung)> charge;
    std::function<void(const Entry&)> on_entry;  ///< after each new evaluation, to save it
  };
  /// Objectives of states at a rung, in their order; may throw, then nothing of the batch counts.
  using Evaluate = std::function<std::vector<double>(std::span<const State>, std::int32_t rung)>;

  /// `earlier`: entries of an interrupted run of the same search.  They are charged when they are asked for
  /// again.
  Journal(const Space& space, Evaluate evaluate, Options options, std::span<const Entry> earlier = {});

  /// Throws BudgetSpent once the budget is used up; what it still covered of a batch is evaluated and
  /// recorded.
  std::vector<double> objectives(std::span<const State> states, std::int32_t rung);
  double objective(const State& state, std::int32_t rung) { return objectives({&state, 1}, rung).front(); }

  std::int32_t last_rung() const { return options_.rungs - 1; }
  const Space& space() const { return space_; }
  double spent() const { return spent_; }
  const std::vector<Entry>& entries() const { return entries_; }

  /// The feasible state with the least objective at the last rung; of equals the first.
  const std::optional<Entry>& best() const { return best_; }
  /// What was spent, and the best objective, each time that it improved.
  const std::vector<std::pair<double, double>>& curve() const { return curve_; }

 private:
  using Key = std::pair<State, std::int32_t>;
  void record(Entry entry, bool replayed);

  const Space& space_;
  Evaluate evaluate_;
  Options options_;
  std::map<Key, double> earlier_, memo_;
  std::vector<Entry> entries_;
  double spent_ = 0;
  std::optional<Entry> best_;
  std::vector<std::pair<double, double>> curve_;
};

/// Runs a search to its end or to the end of its budget.
template <typename Search>
void run_search(Search&& search) {
  try {
    search();
  } catch (const BudgetSpent&) {
  }
}

}  // namespace retort::search
