#include "retort/search/staged.h"

#include <utility>

namespace retort::search {
namespace {

// Blocks by the least objective per parameter while the share is not reached and one still fits.
State without_blocks(Journal& journal, State state, const StagedOptions& options) {
  const Space& space = journal.space();
  const double goal = options.block_share * static_cast<double>(space.least_removed);
  while (static_cast<double>(space.removed(state)) < goal) {
    std::vector<State> steps;
    for (const auto& block : options.blocks) {
      auto next = state;
      for (const auto unit : block) next[unit] = space.highest(unit);
      if (next != state && space.removed(next) <= space.most_removed && (!space.admits || space.admits(next)))
        steps.push_back(std::move(next));
    }
    if (steps.empty()) break;
    const double here = journal.objective(state, options.greedy.rung);
    const auto objectives = journal.objectives(steps, options.greedy.rung);
    const auto cost = [&](std::size_t i) {
      return (objectives[i] - here) / static_cast<double>(space.removed(steps[i]) - space.removed(state));
    };
    std::size_t best = 0;
    for (std::size_t i = 1; i < steps.size(); ++i)
      if (cost(i) < cost(best)) best = i;
    state = steps[best];
  }
  return state;
}

// Whether the units alone can remove what is missing.
bool suffice(const Space& space, State state, const std::vector<std::size_t>& units) {
  for (const auto unit : units) state[unit] = space.highest(unit);
  return space.removed(state) >= space.least_removed;
}

}  // namespace

State staged(Journal& journal, Proxy proxy, const StagedOptions& options) {
  const Space& space = journal.space();
  auto greedy_options = options.greedy;
  greedy_options.start =
      without_blocks(journal, options.start.empty() ? space.whole() : options.start, options);
  if (suffice(space, greedy_options.start, options.channels)) greedy_options.units = options.channels;
  return greedy(journal, std::move(proxy), greedy_options);
}

}  // namespace retort::search
