#include "retort/search/race.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace retort::search {

std::vector<Ranked> race(Journal& journal, std::vector<State> states, const RaceOptions& options) {
  const auto all = static_cast<double>(states.size());
  const double goal = std::clamp(static_cast<double>(options.finalists), 1.0, std::max(all, 1.0));
  std::vector<Ranked> ranked;
  for (std::int32_t rung = 0; rung <= journal.last_rung(); ++rung) {
    if (rung > 0) {
      const double left = std::pow(goal / all, static_cast<double>(rung) / journal.last_rung()) * all;
      const auto survivors =
          std::min(states.size(), static_cast<std::size_t>(std::llround(std::max(left, goal))));
      states.resize(survivors);
    }
    const auto objectives = journal.objectives(states, rung);
    std::vector<std::size_t> order(states.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return objectives[a] < objectives[b]; });
    ranked.clear();
    for (const auto i : order) ranked.push_back({states[i], objectives[i]});
    for (std::size_t i = 0; i < ranked.size(); ++i) states[i] = ranked[i].state;
  }
  return ranked;
}

}  // namespace retort::search
