#include "retort/search/journal.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "retort/base/error.h"

namespace retort::search {

Journal::Journal(const Space& space, Evaluate evaluate, Options options, std::span<const Entry> earlier)
    : space_(space), evaluate_(std::move(evaluate)), options_(std::move(options)) {
  validate(space_);
  std::size_t pieces = 0;
  for (const auto& rung : options_.rungs) {
    base::ensure(rung.weights.size() > pieces, "each rung has more pieces than the one before");
    pieces = rung.weights.size();
  }
  if (!options_.charge) options_.charge = [](const Task&) { return 1.0; };
  for (const auto& entry : earlier) earlier_[{entry.state, entry.rung}] = entry.pieces;
}

std::size_t Journal::known(const State& state) const {
  const auto found = memo_.find(state);
  return found == memo_.end() ? 0 : found->second.size();
}

std::vector<double> Journal::objectives(std::span<const State> states, std::int32_t rung) {
  base::ensure(rung >= 0 && rung <= last_rung(), "a search asks for rungs that exist");
  const auto& weights = this->weights(rung);
  std::vector<Task> fresh;
  std::vector<Entry> planned;
  bool covered = true;
  double spent = spent_;
  std::set<State> asked;
  for (const auto& state : states) {
    Task task{state, known(state), weights.size()};
    if (task.first >= task.last || asked.contains(state)) continue;
    const double charge = options_.charge(task);
    covered = options_.budget <= 0 || spent + charge <= options_.budget;
    if (!covered) break;
    spent += charge;
    asked.insert(state);
    planned.push_back({state, rung, 0, charge});
    const auto found = earlier_.find({state, rung});
    if (found != earlier_.end() && found->second.size() == task.last - task.first)
      complete(planned.back(), found->second);
    else
      fresh.push_back(std::move(task));
  }
  evaluate(std::move(planned), fresh);
  if (!covered) throw BudgetSpent{};
  std::vector<double> result;
  for (const auto& state : states)
    result.push_back(std::inner_product(weights.begin(), weights.end(), memo_.at(state).begin(), 0.0));
  return result;
}

// Records what is planned, in this order: what is known already, and the tasks of `fresh`, which may be told
// of in any order.
void Journal::evaluate(std::vector<Entry> planned, std::span<const Task> fresh) {
  std::vector<Entry*> asked;
  for (auto& entry : planned)
    if (entry.pieces.empty()) asked.push_back(&entry);
  auto entry = planned.begin();
  const auto record_known = [&] {
    for (; entry != planned.end() && !entry->pieces.empty(); ++entry) record(*entry);
  };
  record_known();
  const Tell tell = [&](std::size_t task, std::vector<double> pieces) {
    base::ensure(task < fresh.size() && asked[task]->pieces.empty() &&
                     pieces.size() == fresh[task].last - fresh[task].first,
                 "an evaluator gives a value for every piece of a task, once");
    complete(*asked[task], std::move(pieces));
    if (options_.on_entry) options_.on_entry(*asked[task]);
    record_known();
  };
  if (!fresh.empty()) evaluate_(fresh, tell);
  base::ensure(entry == planned.end(), "an evaluator answers every task");
}

// `pieces`: those that are not in the memory.
void Journal::complete(Entry& entry, std::vector<double> pieces) const {
  const auto& weights = this->weights(entry.rung);
  for (auto& piece : pieces)
    if (!std::isfinite(piece)) piece = std::numeric_limits<double>::infinity();
  auto all = known(entry.state) > 0 ? memo_.at(entry.state) : std::vector<double>{};
  all.insert(all.end(), pieces.begin(), pieces.end());
  entry.objective = std::inner_product(weights.begin(), weights.end(), all.begin(), 0.0);
  base::require<base::ValidationError>(
      std::isfinite(entry.objective) || entry.state != space_.whole(),
      "search: the loss increase of the whole model is not finite; the model "
      "is damaged, evaluate it first.");
  entry.pieces = std::move(pieces);
}

void Journal::record(const Entry& entry) {
  auto& pieces = memo_[entry.state];
  pieces.insert(pieces.end(), entry.pieces.begin(), entry.pieces.end());
  spent_ += entry.charge;
  if (entry.rung == last_rung() && std::isfinite(entry.objective) && space_.feasible(entry.state) &&
      (!best_ || entry.objective < best_->objective)) {
    best_ = entry;
    curve_.emplace_back(spent_, entry.objective);
  }
  entries_.push_back(entry);
}

void Journal::spend(double charge) {
  if (options_.budget > 0 && spent_ + charge > options_.budget) throw BudgetSpent{};
  spent_ += charge;
}

double Journal::price(const State& state, std::int32_t rung) const {
  const Task task{state, known(state), pieces(rung)};
  return task.first < task.last ? options_.charge(task) : 0;
}

std::vector<double> Journal::differences(const State& a, const State& b, std::int32_t rung) const {
  const auto& weights = this->weights(rung);
  const auto &of_a = memo_.at(a), &of_b = memo_.at(b);
  base::ensure(std::min(of_a.size(), of_b.size()) >= weights.size(), "both states were evaluated");
  std::vector<double> result;
  for (std::size_t piece = 0; piece < weights.size(); ++piece)
    result.push_back(weights[piece] * (of_a[piece] - of_b[piece]));
  return result;
}

}  // namespace retort::search
