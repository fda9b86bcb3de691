#include "retort/search/race.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "retort/search/paired.h"

namespace retort::search {
namespace {

bool beaten(const Journal& journal, const State& state, const State& by, std::int32_t rung) {
  return state != by && paired_difference(journal.differences(state, by, rung)).significant;
}

std::vector<Ranked> ranked_at(Journal& journal, const std::vector<State>& states, std::int32_t rung) {
  const auto objectives = journal.objectives(states, rung);
  std::vector<Ranked> ranked;
  for (std::size_t i = 0; i < states.size(); ++i) ranked.push_back({states[i], objectives[i], rung});
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Ranked& a, const Ranked& b) { return a.objective < b.objective; });
  return ranked;
}

}  // namespace

std::vector<Ranked> race(Journal& journal, std::vector<State> states, const RaceOptions& options) {
  std::set<State> seen;
  std::erase_if(states, [&](const State& state) { return !seen.insert(state).second; });
  const auto all = static_cast<double>(states.size());
  const double goal = std::clamp(static_cast<double>(options.survivors), 1.0, std::max(all, 1.0));
  for (std::int32_t rung = 0;; ++rung) {
    auto ranked = ranked_at(journal, states, rung);
    if (rung == journal.last_rung()) return ranked;
    const auto lost = [&](const Ranked& one) {
      return options.incumbent && beaten(journal, one.state, *options.incumbent, rung);
    };
    if (std::all_of(ranked.begin(), ranked.end(), lost)) return ranked;
    const double left = std::pow(goal / all, static_cast<double>(rung + 1) / journal.last_rung()) * all;
    const auto most = static_cast<std::size_t>(std::llround(std::max(left, goal)));
    states.clear();
    for (const auto& one : ranked)
      if (states.size() < most && !beaten(journal, one.state, ranked.front().state, rung))
        states.push_back(one.state);
  }
}

}  // namespace retort::search
