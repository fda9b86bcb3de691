#include "retort/search/neighbourhood.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <set>

namespace retort::search {
namespace {

// One level down or up, and to either end.
std::vector<std::int32_t> other_levels(const Space& space, std::size_t unit, std::int32_t level) {
  std::set<std::int32_t> levels{0, space.highest(unit)};
  if (level > 0) levels.insert(level - 1);
  if (level < space.highest(unit)) levels.insert(level + 1);
  levels.erase(level);
  return {levels.begin(), levels.end()};
}

// `state` with the level of `unit` that is feasible and keeps the sum nearest to `removed`; its own level
// does not count.
std::optional<State> balanced(const Space& space, const State& state, std::size_t unit,
                              std::int64_t removed) {
  std::optional<State> nearest;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  auto other = state;
  for (std::int32_t level = 0; level <= space.highest(unit); ++level) {
    if (level == state[unit]) continue;
    other[unit] = level;
    const auto distance = std::abs(space.removed(other) - removed);
    if (!space.feasible(other) || distance >= least) continue;
    least = distance;
    nearest = other;
  }
  return nearest;
}

// The change of a single unit that makes the state feasible with the least guess.
std::optional<State> feasible_by_one(const Space& space, const State& state, const Proxy& proxy,
                                     std::size_t held) {
  std::optional<State> best;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t unit = 0; unit < state.size(); ++unit) {
    if (unit == held) continue;
    auto next = state;
    for (next[unit] = 0; next[unit] <= space.highest(unit); ++next[unit]) {
      if (next[unit] == state[unit] || !space.feasible(next)) continue;
      const double guess = proxy.difference(state, next);
      if (guess >= least) continue;
      least = guess;
      best = next;
    }
  }
  return best;
}

// The step of one level towards the bounds with the least guess per parameter: giving back lowers the guess,
// removing raises it.
std::optional<State> one_level_closer(const Space& space, const State& state, const Proxy& proxy,
                                      std::size_t held) {
  const auto removed = space.removed(state);
  const std::int32_t step = removed > space.most_removed ? -1 : 1;
  std::optional<State> best;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t unit = 0; unit < state.size(); ++unit) {
    auto next = state;
    next[unit] += step;
    if (unit == held || next[unit] < 0 || next[unit] > space.highest(unit)) continue;
    const auto change = std::abs(space.removed(next) - removed);
    if (change == 0) continue;
    const double guess = proxy.difference(state, next) / static_cast<double>(change);
    if (guess >= least) continue;
    least = guess;
    best = std::move(next);
  }
  return best;
}

}  // namespace

std::vector<State> neighbours(const Space& space, const State& state, const Proxy& proxy) {
  std::set<State> found;
  const auto removed = space.removed(state);
  for (std::size_t unit = 0; unit < state.size(); ++unit)
    for (const auto level : other_levels(space, unit, state[unit])) {
      auto moved = state;
      moved[unit] = level;
      bool any = space.feasible(moved);
      if (any) found.insert(moved);
      for (std::size_t other = 0; other < state.size(); ++other) {
        if (other == unit) continue;
        if (auto pair = balanced(space, moved, other, removed)) {
          found.insert(*std::move(pair));
          any = true;
        }
      }
      if (any) continue;
      if (auto several = repaired(space, moved, proxy, unit)) found.insert(*std::move(several));
    }
  found.erase(state);
  return {found.begin(), found.end()};
}

std::optional<State> repaired(const Space& space, State state, const Proxy& proxy, std::size_t held) {
  std::set<State> seen;
  while (!space.feasible(state)) {
    if (!seen.insert(state).second) return std::nullopt;
    auto next = feasible_by_one(space, state, proxy, held);
    if (!next) next = one_level_closer(space, state, proxy, held);
    if (!next) return std::nullopt;
    state = *std::move(next);
  }
  return state;
}

}  // namespace retort::search
