#include "retort/search/additive.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "retort/base/error.h"
#include "retort/search/neighbourhood.h"

namespace retort::search {
namespace {

constexpr std::int64_t kMostEntries = std::int64_t{1} << 27;
constexpr double kUnreachable = std::numeric_limits<double>::infinity();

// What the units at their highest levels remove, at most what may be removed.
std::int64_t most_useful(const Space& space) {
  std::int64_t all = 0;
  for (const auto& unit : space.units) all += unit.removed.back();
  return std::min(all, space.most_removed);
}

[[noreturn]] void refuse(const Space& space) {
  throw base::UsageError(base::join("search: no choice of units removes ", space.least_removed, " to ",
                                    space.most_removed,
                                    " parameters; widen the bounds or make levels finer."));
}

}  // namespace

State least_additive(const Space& space, const Proxy& scores) {
  base::require<base::UsageError>(
      !space.removed_together,
      "search: the exact additive choice needs units whose parameters add up; choose "
      "sizes per layer, or another method.");
  const auto divisor = common_divisor(space);
  const auto columns = most_useful(space) / divisor + 1;
  const auto rows = static_cast<std::int64_t>(space.units.size());
  base::require<base::UsageError>(columns <= kMostEntries / rows,
                                  "search: the exact additive choice would take a "
                                  "table of ",
                                  rows, " x ", columns, "; use coarser levels.");
  // least[c]: the least sum of the units so far that remove c divisors together.
  std::vector<double> least(static_cast<std::size_t>(columns), kUnreachable);
  least[0] = 0;
  std::vector<std::vector<std::int16_t>> chosen;  // [unit][c]: its level there
  for (std::size_t unit = 0; unit < space.units.size(); ++unit) {
    std::vector<double> with(least.size(), kUnreachable);
    auto& levels = chosen.emplace_back(least.size(), std::int16_t{0});
    for (std::int32_t level = 0; level <= space.highest(unit); ++level) {
      const auto step = space.units[unit].removed[static_cast<std::size_t>(level)] / divisor;
      const double addition = scores.addition(unit, level);
      for (auto c = step; c < columns; ++c) {
        const double sum = least[static_cast<std::size_t>(c - step)] + addition;
        if (sum >= with[static_cast<std::size_t>(c)]) continue;
        with[static_cast<std::size_t>(c)] = sum;
        levels[static_cast<std::size_t>(c)] = static_cast<std::int16_t>(level);
      }
    }
    least = std::move(with);
  }
  const auto first = (space.least_removed + divisor - 1) / divisor;
  if (first >= columns) refuse(space);
  const auto best = std::min_element(least.begin() + first, least.end());
  if (*best == kUnreachable) refuse(space);
  auto c = best - least.begin();
  auto state = space.whole();
  for (std::size_t unit = space.units.size(); unit-- > 0;) {
    state[unit] = chosen[unit][static_cast<std::size_t>(c)];
    c -= space.units[unit].removed[static_cast<std::size_t>(state[unit])] / divisor;
  }
  if (auto admitted = repaired(space, std::move(state), scores)) return *std::move(admitted);
  refuse(space);
}

State one_shot(const Space& space, const Proxy& scores) {
  auto state = space.whole();
  while (space.removed(state) < space.least_removed) {
    std::optional<std::size_t> best;
    double least = kUnreachable;
    for (std::size_t unit = 0; unit < state.size(); ++unit) {
      auto next = state;
      if (++next[unit] > space.highest(unit) || space.removed(next) > space.most_removed) continue;
      const auto gone = static_cast<double>(space.removed(next) - space.removed(state));
      const double score = scores.difference(state, next) / gone;
      if (gone <= 0 || score >= least) continue;
      least = score;
      best = unit;
    }
    if (!best) {
      if (auto mended = repaired(space, state, scores)) return *std::move(mended);
      if (space.removed_together) refuse(space);
      return least_additive(space, scores);
    }
    ++state[*best];
  }
  return state;
}

}  // namespace retort::search
