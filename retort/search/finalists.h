#pragma once
// The best that a search found, and whether the text tells them apart.

#include <cstddef>
#include <vector>

#include "retort/search/journal.h"
#include "retort/search/paired.h"

namespace retort::search {

struct Finalist {
  State state;
  double objective = 0;
  PairedDifference behind;  ///< the first; tied with it unless significant
};

/// Feasible states that were evaluated at the last rung, at most `count`, the least objective first; of
/// equals the one that was found first.
std::vector<Finalist> finalists(const Journal& journal, std::size_t count);

}  // namespace retort::search
