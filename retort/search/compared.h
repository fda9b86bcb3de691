#pragma once
// Steps from one state, measured side by side: all of them on little text, the better ones on more, as far as
// their share of a budget goes.

#include <cstdint>
#include <functional>
#include <vector>

#include "retort/search/journal.h"

namespace retort::search {

struct Step {
  State state;
  double objective = 0;  ///< measured at the rung of the comparison
  double rise = 0;       ///< the objective above that of the state that all steps begin at, at the same rung
};

/// Sorts steps, the best first.
using Order = std::function<void(std::vector<Step>&)>;

struct ComparisonOptions {
  std::int32_t rung = 0;  ///< all are measured there
  double share = 0;       ///< part of a budget for this and the higher rungs together
};

/// Returns steps in the order of `order`, all measured at one rung: the highest one at which the
/// share pays for two steps or more.  At each rung as many of the best go on as it pays for.
std::vector<Step> compared(Journal& journal, const State& from, const std::vector<State>& steps,
                           const ComparisonOptions& options, const Order& order);

/// Sorts steps by the rise per parameter that they remove, the least first.
void order_by_rise(const Space& space, const State& from, std::vector<Step>& steps);

/// Returns the part of `left` that the next step may take, if every step that is still to go to the
/// bounds removes what these remove on the mean.
double share_of_next(const Space& space, const State& from, const std::vector<State>& steps, double left);

}  // namespace retort::search
