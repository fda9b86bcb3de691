#include "retort/search/finalists.h"

#include <algorithm>

namespace retort::search {

std::vector<Finalist> finalists(const Journal& journal, std::size_t count) {
  std::vector<Finalist> found;
  for (const auto& entry : journal.entries())
    if (entry.rung == journal.last_rung() && journal.space().feasible(entry.state))
      found.push_back({entry.state, entry.objective, {}});
  std::stable_sort(found.begin(), found.end(),
                   [](const Finalist& a, const Finalist& b) { return a.objective < b.objective; });
  if (found.size() > count) found.resize(count);
  const auto comparisons = found.size() > 1 ? found.size() - 1 : 1;
  for (auto& one : found)
    one.behind = paired_difference(journal.differences(one.state, found.front().state, journal.last_rung()),
                                   comparisons);
  return found;
}

}  // namespace retort::search
