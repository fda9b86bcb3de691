#include "retort/search/bounded_steps.h"

#include <cmath>
#include <utility>

#include "retort/base/error.h"

namespace retort::search {

BoundedSteps::BoundedSteps(Journal& journal, const State& from, std::int32_t rung)
    : journal_(journal), from_(from), rung_(rung) {
  journal_.objective(from_, rung_ + 1);
}

void BoundedSteps::add(std::span<const State> steps) {
  journal_.objectives(steps, rung_ + 1);
  states_.insert(states_.end(), steps.begin(), steps.end());
  const auto& space = journal_.space();
  for (const auto& step : steps) removed_.push_back(space.removed(step) - space.removed(from_));
}

// What is known costs nothing.
bool BoundedSteps::is_exact(const State& state) const {
  return journal_.price(state, journal_.last_rung()) == 0;
}

double BoundedSteps::low(const State& state) const {
  return journal_.objective(state, is_exact(state) ? journal_.last_rung() : rung_);
}

double BoundedSteps::high(const State& state) const {
  return journal_.objective(state, is_exact(state) ? journal_.last_rung() : rung_ + 1);
}

Step BoundedSteps::step(std::size_t number) const {
  const double objective = low(states_[number]);
  return {states_[number], objective, std::isinf(objective) ? objective : objective - low(from_)};
}

// What they all are compared with has to be as exact.
void BoundedSteps::measure_exactly(const State& state) {
  if (is_exact(state)) return;
  journal_.objective(state, journal_.last_rung());
  if (high(from_) > low(from_)) journal_.objective(from_, journal_.last_rung());
}

template <typename Admitted, typename Value, typename MayBeLess>
std::size_t BoundedSteps::least(Admitted admitted, Value value, MayBeLess may_be_less) {
  for (;;) {
    const auto none = states_.size();
    auto best = none, second = none;
    for (std::size_t i = 0; i < none; ++i) {
      if (!admitted(i)) continue;
      if (best == none || value(i) < value(best))
        second = std::exchange(best, i);
      else if (second == none || value(i) < value(second))
        second = i;
    }
    base::ensure(best < none, "a reachable target leaves a step");
    if (is_exact(best) || second == none || !may_be_less(second, best)) return best;
    for (const auto close : {best, second}) measure_exactly(states_[close]);
  }
}

std::size_t BoundedSteps::cheapest() {
  const auto score = [&](std::size_t i, double objective, double before) {
    return (objective - before) / static_cast<double>(removed(i));
  };
  // Scores are linear in the objective before, so what holds at both of its bounds holds between them.
  const auto may_be_less = [&](std::size_t second, std::size_t first) {
    for (const double before : {low(from_), high(from_)})
      if (score(second, low(states_[second]), before) < score(first, high(states_[first]), before))
        return true;
    return false;
  };
  return least([](std::size_t) { return true; },
               [&](std::size_t i) { return score(i, low(states_[i]), low(from_)); }, may_be_less);
}

std::size_t BoundedSteps::least_feasible() {
  return least(
      [&](std::size_t i) { return journal_.space().feasible(states_[i]); },
      [&](std::size_t i) { return low(states_[i]); },
      [&](std::size_t second, std::size_t first) { return low(states_[second]) < high(states_[first]); });
}

}  // namespace retort::search
