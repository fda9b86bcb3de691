#pragma once
// Many candidates at low fidelity, few at full: each rung keeps the better part, all on the same tokens.

#include <cstdint>
#include <span>
#include <vector>

#include "retort/search/journal.h"

namespace retort::search {

struct RaceOptions {
  std::int64_t finalists = 1;  ///< that are evaluated at the last rung
};

/// The states that reached the last rung with their objectives there, the least first; of equals the one that
/// came first.  The number of survivors falls geometrically from all to `finalists`.
struct Ranked {
  State state;
  double objective = 0;
};
std::vector<Ranked> race(Journal& journal, std::vector<State> states, const RaceOptions& options);

}  // namespace retort::search
