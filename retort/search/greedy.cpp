#include "retort/search/greedy.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "retort/search/additive.h"
#include "retort/search/neighbourhood.h"

namespace retort::search {
namespace {

// Each unit raised until it removes `at_least`, but not beyond the bounds where a lower level removes
// anything.
std::vector<State> steps_up(const Space& space, const State& state, const std::vector<std::size_t>& units,
                            std::int64_t at_least) {
  std::vector<State> steps;
  const auto before = space.removed(state);
  for (const auto unit : units) {
    std::optional<State> step;
    auto next = state;
    while (++next[unit] <= space.highest(unit)) {
      const auto removed = space.removed(next);
      if (removed <= before) continue;
      if (step && removed > space.most_removed) break;
      step = next;
      if (removed - before >= at_least) break;
    }
    if (step) steps.push_back(*std::move(step));
  }
  return steps;
}

// The steps with the least guess per parameter; all of them when `count` is 0.
void shortlist(const Space& space, const State& state, const Proxy& proxy, std::int64_t count,
               std::vector<State>& steps) {
  if (count <= 0 || std::ssize(steps) <= count) return;
  const auto guess = [&](const State& step) {
    return proxy.difference(state, step) / static_cast<double>(space.removed(step) - space.removed(state));
  };
  std::stable_sort(steps.begin(), steps.end(),
                   [&](const State& a, const State& b) { return guess(a) < guess(b); });
  steps.resize(static_cast<std::size_t>(count));
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
  return greedy(journal, Proxy(journal.space()), options);
}

State greedy(Journal& journal, Proxy proxy, const GreedyOptions& options) {
  const Space& space = journal.space();
  const auto at_least = options.steps > 0 ? space.least_removed / options.steps : 1;
  auto units = options.units;
  if (units.empty()) {
    units.resize(space.units.size());
    std::iota(units.begin(), units.end(), std::size_t{0});
  }
  auto state = options.start.empty() ? space.whole() : options.start;
  double objective = journal.objective(state, options.rung);
  while (space.removed(state) < space.least_removed) {
    auto steps = steps_up(space, state, units, at_least);
    if (steps.empty()) {
      state = least_additive(space, proxy);
      break;
    }
    shortlist(space, state, proxy, options.candidates, steps);
    auto objectives = journal.objectives(steps, options.rung);
    std::vector<Proxy::Measured> measured;
    for (std::size_t i = 0; i < steps.size(); ++i)
      measured.push_back({state, steps[i], objectives[i] - objective});
    proxy.learn(std::move(measured));
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
