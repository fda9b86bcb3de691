#include "retort/search/space.h"

#include <algorithm>
#include <numeric>

#include "retort/base/error.h"

namespace retort::search {
namespace {

constexpr std::int64_t kMostSums = std::int64_t{1} << 20;

}  // namespace

std::int64_t Space::removed(const State& state) const {
  if (removed_together) return removed_together(state);
  std::int64_t sum = 0;
  for (std::size_t unit = 0; unit < units.size(); ++unit)
    sum += units[unit].removed[static_cast<std::size_t>(state[unit])];
  return sum;
}

bool Space::holds(const State& state) const {
  if (state.size() != units.size()) return false;
  for (std::size_t unit = 0; unit < units.size(); ++unit)
    if (state[unit] < 0 || state[unit] > highest(unit)) return false;
  return true;
}

bool Space::feasible(const State& state) const {
  const auto gone = removed(state);
  return gone >= least_removed && gone <= most_removed && (!admits || admits(state));
}

std::int64_t common_divisor(const Space& space) {
  std::int64_t divisor = 0;
  for (const auto& unit : space.units)
    for (const auto removed : unit.removed) divisor = std::gcd(divisor, removed);
  return std::max<std::int64_t>(divisor, 1);
}

std::optional<Reach> reach(const Space& space) {
  const auto divisor = common_divisor(space);
  std::int64_t all = 0;
  for (const auto& unit : space.units) all += unit.removed.back();
  if (space.removed_together || all / divisor > kMostSums) return std::nullopt;
  std::vector<bool> reached(static_cast<std::size_t>(all / divisor + 1), false);
  reached[0] = true;
  for (const auto& unit : space.units)
    for (auto sum = std::ssize(reached) - 1; sum > 0; --sum)
      for (const auto removed : unit.removed)
        if (removed / divisor <= sum && reached[static_cast<std::size_t>(sum - removed / divisor)])
          reached[static_cast<std::size_t>(sum)] = true;
  const auto first = std::min((space.least_removed + divisor - 1) / divisor, std::ssize(reached));
  Reach reach;
  for (std::int64_t sum = 0; sum < std::ssize(reached); ++sum) {
    if (!reached[static_cast<std::size_t>(sum)]) continue;
    if (sum < first) reach.below = sum * divisor;
    if (sum >= first && !reach.from) reach.from = sum * divisor;
  }
  return reach;
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
