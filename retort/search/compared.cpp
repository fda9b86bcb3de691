#include "retort/search/compared.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace retort::search {
namespace {

std::vector<Step> measured(Journal& journal, const State& from, const std::vector<State>& states,
                           std::int32_t rung) {
  const double before = journal.objective(from, rung);
  const auto objectives = journal.objectives(states, rung);
  std::vector<Step> steps;
  for (std::size_t i = 0; i < states.size(); ++i)
    steps.push_back(
        {states[i], objectives[i], std::isinf(objectives[i]) ? objectives[i] : objectives[i] - before});
  return steps;
}

// The first ones that `left` pays for at a rung.
std::vector<State> affordable(const Journal& journal, const State& from, const std::vector<Step>& steps,
                              std::int32_t rung, double left) {
  std::vector<State> states;
  double price = journal.price(from, rung);
  for (const auto& step : steps) {
    price += journal.price(step.state, rung);
    if (price > left) break;
    states.push_back(step.state);
  }
  return states;
}

}  // namespace

std::vector<Step> compared(Journal& journal, const State& from, const std::vector<State>& steps,
                           const ComparisonOptions& options, const Order& order) {
  const double end = journal.spent() + options.share;
  auto found = measured(journal, from, steps, options.rung);
  order(found);
  for (auto rung = options.rung + 1; rung <= journal.last_rung() && options.share > 0; ++rung) {
    const auto states = affordable(journal, from, found, rung, end - journal.spent());
    if (states.size() < 2) break;
    found = measured(journal, from, states, rung);
    order(found);
  }
  return found;
}

void order_by_rise(const Space& space, const State& from, std::vector<Step>& steps) {
  const auto before = space.removed(from);
  const auto score = [&](const Step& step) {
    return step.rise / static_cast<double>(space.removed(step.state) - before);
  };
  std::stable_sort(steps.begin(), steps.end(),
                   [&](const Step& a, const Step& b) { return score(a) < score(b); });
}

double share_of_next(const Space& space, const State& from, const std::vector<State>& steps, double left) {
  const auto gap = static_cast<double>(space.least_removed - space.removed(from));
  double sum = 0, least = std::numeric_limits<double>::infinity();
  for (const auto& step : steps) {
    const auto removed = static_cast<double>(space.removed(step) - space.removed(from));
    sum += removed;
    least = std::min(least, removed);
  }
  if (steps.empty() || least >= gap) return left;
  return left / std::max(2.0, std::ceil(gap * static_cast<double>(steps.size()) / sum));
}

}  // namespace retort::search
