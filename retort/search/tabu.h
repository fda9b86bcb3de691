#pragma once
// Tabu search: always the best allowed neighbour, also when it is worse, and no step back for a while.
// Source: Glover & Laguna, Tabu Search (1997); the place in the pipeline is section 3.5.4 of Dickmann et al.
// (2025).

#include <cstdint>
#include <vector>

#include "retort/search/journal.h"
#include "retort/search/proxy.h"

namespace retort::search {

struct TabuOptions {
  std::uint64_t seed = 0;
  std::int64_t iterations = 1000;  ///< upper limit; the journal's budget ends most searches before
  std::int64_t candidates = 16;    ///< neighbours evaluated in an iteration: the best by the proxy's guess
  std::int64_t random_candidates = 4;  ///< and so many others
  std::int64_t tenure_min = 0;         ///< iterations for which a unit may not go back; 0: floor(sqrt(units))
  std::int64_t tenure_max = 0;         ///< 0: twice that
  std::int64_t stagnation = 20;  ///< iterations without a new best before a restart from the elite; 0: never
  std::int64_t elite = 4;        ///< best states that restarts begin from, in turn
};

/// Searches from the best of `starts`, which are feasible.  A unit that went up a level may not come down
/// while it is tabu, and the other way round; a neighbour better than the best so far is taken all the same.
/// When everything is tabu, all is forgiven.  The result is journal.best(), never worse than a start. All
/// draws are functions of (seed, iteration).
void tabu(Journal& journal, Proxy proxy, const std::vector<State>& starts, const TabuOptions& options);

}  // namespace retort::search
