#pragma once
// Feasible states by chance.

#include <cstdint>

#include "retort/base/random.h"
#include "retort/search/space.h"

namespace retort::search {

/// Units at random move up by one level until enough is removed; tried again when that oversteps the bounds.
/// Throws UsageError when a thousand tries find nothing: the bounds are too narrow for the units.
State random_state(const Space& space, base::Random& random);

/// `switches` times: one unit goes a level up and another one a level down; where their sizes differ, others
/// follow at random until the state is feasible.  A switch that does not end so is left out.  Source:
/// EvoPress (Sieberling et al. 2024), level switches.
State level_switched(const Space& space, const State& state, std::int64_t switches, base::Random& random);

}  // namespace retort::search
