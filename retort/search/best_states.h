#pragma once
// The best that a search found.

#include <cstddef>
#include <vector>

#include "retort/search/journal.h"

namespace retort::search {

/// Returns feasible states whose objective at the last rung is known and finite, at most `count`,
/// the least objective first; of equals the one that was found first.
std::vector<State> best_states(const Journal& journal, std::size_t count);

}  // namespace retort::search
