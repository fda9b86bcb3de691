#pragma once
// One-shot choices from scores of single units, as most released tools make them: no interaction is seen.

#include <vector>

#include "retort/search/proxy.h"
#include "retort/search/space.h"

namespace retort::search {

/// The feasible state with the least sum of additions: dynamic programming over what is removed.  It is exact
/// for up to 2^17 different sums of removals.  With more, sums share ranges, of which each keeps its best
/// choice.  Of equals the one with the lower levels in later units.  Where the space does not admit it, a
/// feasible state near it.  Throws UsageError when no feasible state is found, and when removals do not add
/// up.
State least_additive(const Space& space, const Proxy& scores);

/// Steps of one level in the order of their addition per parameter, the least first, until enough is removed;
/// a step that would remove too much is passed over.  Where that ends short of the bounds, others are given
/// back, or all are chosen as least_additive does.  Throws UsageError when no state is feasible.
State one_shot(const Space& space, const Proxy& scores);

}  // namespace retort::search
