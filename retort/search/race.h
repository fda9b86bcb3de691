#pragma once
// Many candidates at low fidelity, few at full: each rung keeps the better part, all on the same pieces.

#include <cstdint>
#include <vector>

#include "retort/search/journal.h"

namespace retort::search {

struct RaceOptions {
  std::int64_t survivors = 1;  ///< most states that the last rung leaves
  /// A state that was evaluated at the last rung before.  The race is over once every state that is
  /// left is worse than it beyond chance.
  const State* incumbent = nullptr;
};

struct Ranked {
  State state;
  double objective = 0;  ///< measured at `rung`
  std::int32_t rung = 0;
};

/// The states that are left at the end, the least objective first; of equals the one that came first, of the
/// same state one.  The number of states falls geometrically from all to `survivors`; besides, a state goes
/// once it is worse than the best of its rung beyond chance, by its differences piece by piece and without
/// correction for the number of states: to lose one wrongly costs less than to measure all.  Never empty for
/// any states.
std::vector<Ranked> race(Journal& journal, std::vector<State> states, const RaceOptions& options);

}  // namespace retort::search
