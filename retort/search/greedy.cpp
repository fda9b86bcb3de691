#include "retort/search/greedy.h"

#include <algorithm>
#include <optional>

#include "retort/search/additive.h"
#include "retort/search/neighbourhood.h"
#include "retort/search/proxy.h"

namespace retort::search {
namespace {

std::vector<State> steps_up(const Space& space, const State& state) {
  std::vector<State> steps;
  for (std::size_t unit = 0; unit < state.size(); ++unit) {
    auto next = state;
    while (++next[unit] <= space.highest(unit))
      if (space.removed(next) > space.removed(state)) break;
    if (next[unit] <= space.highest(unit)) steps.push_back(std::move(next));
  }
  return steps;
}

// The index of the least value; of equals the first.
template <typename Value>
std::size_t least(std::size_t count, Value value) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < count; ++i)
    if (value(i) < value(best)) best = i;
  return best;
}

}  // namespace

State greedy(Journal& journal, const GreedyOptions& options) {
  const Space& space = journal.space();
  Proxy proxy(space);
  auto state = space.whole();
  double objective = journal.objective(state, options.rung);
  while (space.removed(state) < space.least_removed) {
    auto steps = steps_up(space, state);
    auto objectives = journal.objectives(steps, options.rung);
    for (std::size_t i = 0; i < steps.size(); ++i) proxy.learn(state, steps[i], objectives[i] - objective);
    const auto removed = space.removed(state);
    auto chosen = least(steps.size(), [&](std::size_t i) {
      return (objectives[i] - objective) / static_cast<double>(space.removed(steps[i]) - removed);
    });
    if (space.removed(steps[chosen]) >= space.least_removed) {
      std::vector<std::size_t> arriving;
      for (std::size_t i = 0; i < steps.size(); ++i)
        if (space.feasible(steps[i])) arriving.push_back(i);
      if (arriving.empty()) {
        const auto mended = repaired(space, steps[chosen], proxy);
        state = mended ? *mended : least_additive(space, proxy);
        break;
      }
      chosen = arriving[least(arriving.size(), [&](std::size_t i) { return objectives[arriving[i]]; })];
    }
    state = steps[chosen];
    objective = objectives[chosen];
  }
  journal.objective(state, journal.last_rung());
  return state;
}

}  // namespace retort::search
