#include "retort/search/best_states.h"

#include <algorithm>
#include <cmath>

namespace retort::search {

std::vector<State> best_states(const Journal& journal, std::size_t count) {
  std::vector<const Journal::Entry*> found;
  for (const auto& entry : journal.entries())
    if (entry.rung == journal.last_rung() && std::isfinite(entry.objective) &&
        journal.space().feasible(entry.state))
      found.push_back(&entry);
  std::stable_sort(found.begin(), found.end(),
                   [](const auto* a, const auto* b) { return a->objective < b->objective; });
  if (found.size() > count) found.resize(count);
  std::vector<State> states;
  for (const auto* entry : found) states.push_back(entry->state);
  return states;
}

}  // namespace retort::search
