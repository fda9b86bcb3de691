#pragma once
// From the whole model, always the step that costs least per parameter, measured again after each.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "retort/search/bounded_steps.h"
#include "retort/search/journal.h"
#include "retort/search/proxy.h"

namespace retort::search {

/// Where objectives are known between bounds, see BoundedSteps.
struct BetweenBounds {
  /// A unit that competes for the last step: at the lowest level that reaches the bounds, whatever it skips.
  std::optional<std::size_t> finishing = {};
  /// Told of each state before the steps from it are measured.  What the space makes of them may depend on
  /// it.
  std::function<void(const State& state)> on_state = {};
  /// Told which step is taken, of all that were measured.
  std::function<void(const BoundedSteps& steps, std::size_t taken)> on_step = {};
};

struct GreedyOptions {
  std::int32_t rung = 0;        ///< rung of comparisons; the result is evaluated at the last too
  std::int64_t candidates = 0;  ///< steps that are evaluated, the best by the proxy's guess; 0: all
  /// Budget of all comparisons without the result.  If set, each has a share, for more steps than
  /// `candidates` and then, where all are in, for higher rungs.
  std::optional<double> budget = {};
  std::int64_t steps = 0;  ///< a step removes at least this part of what is to go; 0: a level at a time
  /// Where the next comparisons would spend more in all, they end.  All is then chosen anew in one shot, by
  /// what was learned: what is left pays for the result.
  double limit = std::numeric_limits<double>::infinity();
  State start = {};                     ///< empty: the whole model
  std::vector<std::size_t> units = {};  ///< units that may rise; empty: all
  /// Set: steps are compared by bounds, all of them, and nothing is measured of the result.
  std::optional<BetweenBounds> between_bounds = {};
};

/// Whether measuring a state and the steps from it would spend more than the limit.
bool goes_beyond(const Journal& journal, const State& state, const std::vector<State>& steps,
                 const GreedyOptions& options);

/// A step raises one unit.  Its score is (objective after - objective before) / parameters that it removes.
/// Once the cheapest step reaches the bounds, only steps that end within them compete, by objective.  Where
/// no single step does, the state is repaired by what the steps so far have shown, and where that fails, it
/// is the least additive one by them.  Returns the state; it is feasible.  Throws UsageError when none is
/// found.
State greedy(Journal& journal, const GreedyOptions& options = {});
/// Does the same with guesses for the shortlists.
State greedy(Journal& journal, Proxy proxy, const GreedyOptions& options);

}  // namespace retort::search
