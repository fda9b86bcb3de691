#include "retort/search/space.h"

#include <algorithm>

#include "retort/base/error.h"

namespace retort::search {

std::int64_t Space::removed(const State& state) const {
  if (removed_together) return removed_together(state);
  std::int64_t sum = 0;
  for (std::size_t unit = 0; unit < units.size(); ++unit)
    sum += units[unit].removed[static_cast<std::size_t>(state[unit])];
  return sum;
}

bool Space::feasible(const State& state) const {
  const auto gone = removed(state);
  return gone >= least_removed && gone <= most_removed && (!admits || admits(state));
}

void validate(const Space& space) {
  base::require<base::UsageError>(!space.units.empty(),
                                  "search: expected units to choose from, found none; allow more kinds.");
  State all;
  for (std::size_t unit = 0; unit < space.units.size(); ++unit) {
    const auto& removed = space.units[unit].removed;
    base::require<base::UsageError>(
        !removed.empty() && removed.front() == 0 &&
            std::adjacent_find(removed.begin(), removed.end(), std::greater_equal<>()) == removed.end(),
        "search: ", space.units[unit].name,
        ": expected levels that begin at 0 parameters removed and rise, found others.");
    all.push_back(space.highest(unit));
  }
  base::require<base::UsageError>(space.least_removed >= 0 && space.least_removed <= space.most_removed &&
                                      space.removed(all) >= space.least_removed,
                                  "search: expected to remove ", space.least_removed, " to ",
                                  space.most_removed, " parameters, but the units hold ", space.removed(all),
                                  "; choose a target that they can reach.");
}

}  // namespace retort::search
