#pragma once
// From the whole model, always the step that costs least per parameter, measured again after each.

#include "retort/search/journal.h"

namespace retort::search {

struct GreedyOptions {
  std::int32_t rung = 0;  ///< at which steps are compared; the result is evaluated at the last rung too
};

/// A step raises one unit by one level, or by as many as it takes to remove anything. The score of a step is
/// (f after - f before) / parameters that it removes. Once the cheapest step reaches the bounds, only steps
/// that end within them compete, and the least f wins.  Where no single step does, the state is repaired by
/// what the steps so far have shown, and where that fails, it is the least additive one by them.  Returns the
/// state; it is feasible.  Throws UsageError when none is found.
State greedy(Journal& journal, const GreedyOptions& options = {});

}  // namespace retort::search
