#pragma once
// The feasible states one step away: a unit changes its level, and others make up for what that removes or
// gives back.  With units of one size these are the swaps of the literature; with widths they are the shifts.

#include <optional>
#include <vector>

#include "retort/search/proxy.h"
#include "retort/search/space.h"

namespace retort::search {

/// Distinct feasible states: one unit moves by a level, or all the way, alone or with one other unit at the
/// level that brings the sum nearest to what it was; where no single unit can make up, several do, by the
/// proxy's guess.
std::vector<State> neighbours(const Space& space, const State& state, const Proxy& proxy);

/// A feasible state near `state`, without changing the unit `held`: by the change of one unit where that is
/// enough, else level by level, giving back while too much is removed and removing while too little is; none
/// where that leads nowhere.
std::optional<State> repaired(const Space& space, State state, const Proxy& proxy,
                              std::size_t held = static_cast<std::size_t>(-1));

}  // namespace retort::search
