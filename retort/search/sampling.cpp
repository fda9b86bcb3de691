#include "retort/search/sampling.h"

#include <optional>
#include <vector>

#include "retort/base/error.h"

namespace retort::search {
namespace {

constexpr int kTries = 1000;
constexpr int kBalanceSteps = 64;

// Units whose level can change by `step`.
std::vector<std::size_t> movable(const Space& space, const State& state, std::int32_t step) {
  std::vector<std::size_t> units;
  for (std::size_t unit = 0; unit < state.size(); ++unit)
    if (const auto level = state[unit] + step; level >= 0 && level <= space.highest(unit))
      units.push_back(unit);
  return units;
}

// One unit a level up, then others at random down, or up again, until the state is feasible.
std::optional<State> switched_once(const Space& space, State state, base::Random& random) {
  const auto raised = movable(space, state, 1);
  if (raised.empty()) return std::nullopt;
  const auto held = raised[random.next_below(raised.size())];
  ++state[held];
  for (int attempt = 0; attempt < kBalanceSteps; ++attempt) {
    if (attempt > 0 && space.feasible(state)) return state;
    const std::int32_t step = attempt == 0 || space.removed(state) > space.most_removed ? -1 : 1;
    auto units = movable(space, state, step);
    std::erase(units, held);
    if (units.empty()) return std::nullopt;
    state[units[random.next_below(units.size())]] += step;
  }
  return std::nullopt;
}

}  // namespace

State random_state(const Space& space, base::Random& random) {
  for (int attempt = 0; attempt < kTries; ++attempt) {
    auto state = space.whole();
    while (space.removed(state) < space.least_removed) {
      const auto units = movable(space, state, 1);
      if (units.empty()) break;
      ++state[units[random.next_below(units.size())]];
    }
    if (space.feasible(state)) return state;
  }
  throw base::UsageError(base::join("search: found no choice of units that removes ", space.least_removed,
                                    " to ", space.most_removed,
                                    " parameters; widen the bounds or make levels finer."));
}

State level_switched(const Space& space, const State& state, std::int64_t switches, base::Random& random) {
  auto switched = state;
  for (std::int64_t i = 0; i < switches; ++i)
    if (auto next = switched_once(space, switched, random)) switched = *std::move(next);
  return switched;
}

}  // namespace retort::search
