#include "retort/search/staged.h"

#include <algorithm>
#include <utility>

#include "retort/search/compared.h"

namespace retort::search {
namespace {

// Blocks by the least objective per parameter while the share is not reached and one still fits.
State without_blocks(Journal& journal, State state, const StagedOptions& options, double end) {
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
    if (steps.empty() || goes_beyond(journal, state, steps, options.greedy)) break;
    const double share = share_of_next(space, state, steps, std::max(0.0, end - journal.spent()));
    state = compared(journal, state, steps, {.rung = options.greedy.rung, .share = share},
                     [&](auto& all) { order_by_rise(space, state, all); })
                .front()
                .state;
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
  const double end = journal.spent() + options.greedy.budget.value_or(0);
  auto greedy_options = options.greedy;
  greedy_options.start =
      without_blocks(journal, options.start.empty() ? space.whole() : options.start, options, end);
  if (options.greedy.budget) greedy_options.budget = std::max(0.0, end - journal.spent());
  if (suffice(space, greedy_options.start, options.channels)) greedy_options.units = options.channels;
  return greedy(journal, std::move(proxy), greedy_options);
}

}  // namespace retort::search
