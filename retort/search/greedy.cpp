#include "retort/search/greedy.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "retort/search/additive.h"
#include "retort/search/compared.h"
#include "retort/search/neighbourhood.h"

namespace retort::search {
namespace {

// Each unit raised until it removes `at_least`, but not beyond the bounds where a lower level removes
// anything.
std::vector<State> steps_up(const Space& space, const State& state, const std::vector<std::size_t>& units,
                            std::int64_t at_least) {
  std::vector<State> steps;
  const auto before = space.removed(state);
  for (const auto unit : units) {
    std::optional<State> step;
    auto next = state;
    while (++next[unit] <= space.highest(unit)) {
      const auto removed = space.removed(next);
      if (removed <= before || (space.admits && !space.admits(next))) continue;
      if (step && removed > space.most_removed) break;
      step = next;
      if (removed - before >= at_least) break;
    }
    if (step) steps.push_back(*std::move(step));
  }
  return steps;
}

// The steps with the least guess per parameter: `count` of them, all when it is 0, and those besides that
// `share` still pays for.
void shortlist(const Journal& journal, const State& state, const Proxy& proxy, const GreedyOptions& options,
               double share, std::vector<State>& steps) {
  const auto count = options.candidates;
  if (count <= 0 || std::ssize(steps) <= count) return;
  const Space& space = journal.space();
  const auto guess = [&](const State& step) {
    return proxy.difference(state, step) / static_cast<double>(space.removed(step) - space.removed(state));
  };
  std::stable_sort(steps.begin(), steps.end(),
                   [&](const State& a, const State& b) { return guess(a) < guess(b); });
  double price = 0;
  std::vector<State> first;
  for (auto& step : steps) {
    const double more = journal.price(step, options.rung);
    if (std::ssize(first) >= count && !(price + more <= share)) continue;
    price += more;
    first.push_back(std::move(step));
  }
  steps = std::move(first);
}

// By rise per parameter; once the first reaches the bounds, what ends within them comes before, by objective.
void order_towards(const Space& space, const State& state, std::vector<Step>& steps) {
  auto by_rise = steps;
  order_by_rise(space, state, by_rise);
  if (space.removed(by_rise.front().state) >= space.least_removed) {
    const auto feasible = [&](const Step& step) { return space.feasible(step.state); };
    std::erase_if(steps, std::not_fn(feasible));
    std::erase_if(by_rise, feasible);
    std::stable_sort(steps.begin(), steps.end(),
                     [](const Step& a, const Step& b) { return a.objective < b.objective; });
    by_rise.insert(by_rise.begin(), steps.begin(), steps.end());
  }
  steps.swap(by_rise);
}

// What the first rung says of all steps.
std::vector<Proxy::Measured> lessons(Journal& journal, const State& state, const std::vector<State>& steps,
                                     std::int32_t rung) {
  const double before = journal.objective(state, rung);
  const auto objectives = journal.objectives(steps, rung);
  std::vector<Proxy::Measured> measured;
  for (std::size_t i = 0; i < steps.size(); ++i)
    measured.push_back({state, steps[i], objectives[i] - before});
  return measured;
}

// The state with one unit raised until it reaches the bounds; empty where it cannot.
std::optional<State> finished(const Space& space, State state, std::size_t unit) {
  while (++state[unit] <= space.highest(unit))
    if (space.removed(state) >= space.least_removed) return state;
  return {};
}

// The cheapest step, or of those that reach the bounds the one with the least objective.
State taken_between_bounds(Journal& journal, const State& state, const std::vector<State>& steps,
                           const GreedyOptions& options) {
  const Space& space = journal.space();
  BoundedSteps measured(journal, state, options.rung);
  measured.add(steps);
  auto taken = measured.cheapest();
  if (space.removed(measured.states()[taken]) >= space.least_removed) {
    const auto& unit = options.between_bounds->finishing;
    const auto last = unit ? finished(space, state, *unit) : std::nullopt;
    if (last && std::ranges::find(steps, *last) == steps.end()) measured.add({&*last, 1});
    taken = measured.least_feasible();
  }
  if (options.between_bounds->on_step) options.between_bounds->on_step(measured, taken);
  return measured.states()[taken];
}

}  // namespace

bool goes_beyond(const Journal& journal, const State& state, const std::vector<State>& steps,
                 const GreedyOptions& options) {
  double spent = journal.spent() + journal.price(state, options.rung);
  for (const auto& step : steps) spent += journal.price(step, options.rung);
  return spent > options.limit;
}

State greedy(Journal& journal, const GreedyOptions& options) {
  return greedy(journal, Proxy(journal.space()), options);
}

State greedy(Journal& journal, Proxy proxy, const GreedyOptions& options) {
  const Space& space = journal.space();
  const auto at_least = options.steps > 0 ? space.least_removed / options.steps : 1;
  auto units = options.units;
  if (units.empty()) {
    units.resize(space.units.size());
    std::iota(units.begin(), units.end(), std::size_t{0});
  }
  const double end = journal.spent() + options.budget.value_or(0);
  auto state = options.start.empty() ? space.whole() : options.start;
  while (space.removed(state) < space.least_removed) {
    if (options.between_bounds && options.between_bounds->on_state) options.between_bounds->on_state(state);
    auto steps = steps_up(space, state, units, at_least);
    if (steps.empty()) {
      state = least_additive(space, proxy);
      break;
    }
    if (options.between_bounds) {
      state = taken_between_bounds(journal, state, steps, options);
      continue;
    }
    const double share =
        options.budget ? share_of_next(space, state, steps, std::max(0.0, end - journal.spent())) : 0;
    shortlist(journal, state, proxy, options, share, steps);
    if (goes_beyond(journal, state, steps, options)) {
      state = one_shot(space, proxy);
      break;
    }
    const auto found = compared(journal, state, steps, {.rung = options.rung, .share = share},
                                [&](auto& all) { order_towards(space, state, all); });
    proxy.learn(lessons(journal, state, steps, options.rung));
    state = found.front().state;
    if (space.removed(state) < space.least_removed || space.feasible(state)) continue;
    const auto mended = repaired(space, state, proxy);
    state = mended ? *mended : least_additive(space, proxy);
  }
  if (!options.between_bounds) journal.objective(state, journal.last_rung());
  return state;
}

}  // namespace retort::search
