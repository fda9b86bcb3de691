#include "retort/search/journal.h"

#include <cmath>

#include "retort/base/error.h"

namespace retort::search {

Journal::Journal(const Space& space, Evaluate evaluate, Options options, std::span<const Entry> earlier)
    : space_(space), evaluate_(std::move(evaluate)), options_(std::move(options)) {
  validate(space_);
  if (!options_.charge) options_.charge = [](const State&, std::int32_t) { return 1.0; };
  for (const auto& entry : earlier) earlier_[{entry.state, entry.rung}] = entry.objective;
}

std::vector<double> Journal::objectives(std::span<const State> states, std::int32_t rung) {
  base::ensure(rung >= 0 && rung < options_.rungs, "a search asks for rungs that exist");
  std::vector<State> fresh;
  std::vector<Entry> planned;
  bool covered = true;
  double spent = spent_;
  std::map<Key, std::size_t> asked;
  for (const auto& state : states) {
    const Key key{state, rung};
    if (memo_.contains(key) || asked.contains(key)) continue;
    const double charge = options_.charge(state, rung);
    covered = options_.budget <= 0 || spent + charge <= options_.budget;
    if (!covered) break;
    spent += charge;
    asked[key] = planned.size();
    planned.push_back({state, rung, 0, charge});
    if (!earlier_.contains(key)) fresh.push_back(state);
  }
  const auto values = fresh.empty() ? std::vector<double>{} : evaluate_(fresh, rung);
  base::ensure(values.size() == fresh.size(), "an evaluator answers for every state");
  std::size_t next = 0;
  for (auto& entry : planned) {
    const auto known = earlier_.find({entry.state, entry.rung});
    entry.objective = known != earlier_.end() ? known->second : values[next++];
    record(std::move(entry), known != earlier_.end());
  }
  if (!covered) throw BudgetSpent{};
  std::vector<double> result;
  for (const auto& state : states) result.push_back(memo_.at({state, rung}));
  return result;
}

void Journal::record(Entry entry, bool replayed) {
  base::require<base::ValidationError>(std::isfinite(entry.objective),
                                       "search: the objective of a candidate is not finite; the model is "
                                       "damaged, evaluate it first.");
  memo_[{entry.state, entry.rung}] = entry.objective;
  spent_ += entry.charge;
  if (entry.rung == last_rung() && space_.feasible(entry.state) &&
      (!best_ || entry.objective < best_->objective)) {
    best_ = entry;
    curve_.emplace_back(spent_, entry.objective);
  }
  entries_.push_back(entry);
  if (!replayed && options_.on_entry) options_.on_entry(entry);
}

}  // namespace retort::search
