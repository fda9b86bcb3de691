#pragma once
// Every evaluation of a search, in order: its memory, its meter and its saved state.
//
// The text that candidates are compared on comes in pieces, and a fidelity, or rung, is the first few of
// them, so that what was paid for at a low rung counts at a higher one, and two candidates can be compared
// piece by piece.
//
// A search is a plain function that asks the journal for objectives.  What was evaluated before is answered
// from memory and costs nothing; the rest goes to the evaluator, in batches whose members do not depend on
// each other.  A search draws its random numbers from (seed, iteration, draw) alone, so running it again with
// the journal of an interrupted run takes the same path to where it stopped, and goes on.

#include <cstddef>
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

/// A fidelity: objective = sum over the first pieces of weights[i] * (what the evaluator says of piece i).
struct Rung {
  std::vector<double> weights;
};

/// What an evaluator is asked: a state on the pieces from `first` up to `last`, without it.
struct Task {
  State state;
  std::size_t first = 0, last = 0;
};

class Journal {
 public:
  struct Entry {
    State state;
    std::int32_t rung = 0;
    double objective = 0;
    double charge = 0;
    /// Pieces of the state that were not known before; infinite where they were not finite.
    std::vector<double> pieces = {};
    bool operator==(const Entry&) const = default;
  };
  struct Options {
    double budget = 0;  ///< counted in the unit of `charge`; 0: without limit
    /// The rungs, cheapest first; results count at the last.  Each has more pieces than the one
    /// before.
    std::vector<Rung> rungs = {{{1.0}}};
    /// What a task counts, whatever a cache saves: searches with and without it take one path.  Empty: 1.
    std::function<double(const Task&)> charge = {};
    std::function<void(const Entry&)> on_entry = {};  ///< after each new evaluation, as told, to save it
  };
  /// Takes the pieces of one of the tasks, by its place among them; each is saved at once, so that nothing is
  /// lost when another one fails.  A piece that is not finite counts as infinite, so its state loses
  /// everywhere; of the whole model it is a ValidationError.  To be called by one thread at a time.
  using Tell = std::function<void(std::size_t task, std::vector<double> pieces)>;
  /// Tells of every task once, in any order, so that several evaluators can share them; may throw.  The
  /// search is the same whatever the order.
  using Evaluate = std::function<void(std::span<const Task>, const Tell&)>;

  /// `earlier`: entries of an interrupted run of the same search.  They are charged when they are asked for
  /// again.
  Journal(const Space& space, Evaluate evaluate, Options options, std::span<const Entry> earlier = {});

  /// Returns objectives in the order of `states`.  Throws BudgetSpent once the budget is used up;
  /// what it still covered of a batch is evaluated and recorded.
  std::vector<double> objectives(std::span<const State> states, std::int32_t rung);
  double objective(const State& state, std::int32_t rung) { return objectives({&state, 1}, rung).front(); }
  /// Charges work on candidates that is not an evaluation.  Throws BudgetSpent where the budget
  /// does not cover it.
  void spend(double charge);
  /// What objective() would add to what is spent.
  double price(const State& state, std::int32_t rung) const;
  /// Compares two states that were evaluated at `rung` or a higher one.  Returns for each piece of
  /// the rung what it adds to the objective of `a` more than to that of `b`.
  std::vector<double> differences(const State& a, const State& b, std::int32_t rung) const;

  /// Number of pieces of a rung.
  std::size_t pieces(std::int32_t rung) const { return weights(rung).size(); }
  std::int32_t last_rung() const { return static_cast<std::int32_t>(options_.rungs.size()) - 1; }
  const Space& space() const { return space_; }
  double spent() const { return spent_; }
  const std::vector<Entry>& entries() const { return entries_; }

  /// The feasible state with the least finite objective at the last rung; of equals the first.
  const std::optional<Entry>& best() const { return best_; }
  /// What was spent, and the best objective, each time that it improved.
  const std::vector<std::pair<double, double>>& curve() const { return curve_; }

 private:
  using Key = std::pair<State, std::int32_t>;
  const std::vector<double>& weights(std::int32_t rung) const {
    return options_.rungs[static_cast<std::size_t>(rung)].weights;
  }
  std::size_t known(const State& state) const;
  void complete(Entry& entry, std::vector<double> pieces) const;
  void record(const Entry& entry);
  void evaluate(std::vector<Entry> planned, std::span<const Task> fresh);

  const Space& space_;
  Evaluate evaluate_;
  Options options_;
  std::map<Key, std::vector<double>> earlier_;  // pieces
  std::map<State, std::vector<double>> memo_;   // pieces
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
