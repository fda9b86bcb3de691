#include "retort/search/proxy.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace retort::search {
namespace {

constexpr double kLearningRate = 0.5;
constexpr int kPasses = 5;
constexpr double kHopeless = 10;

// The levels to probe: the highest and others below it at equal distances.
std::vector<std::int32_t> probed_levels(std::int32_t highest, std::int32_t probes) {
  std::vector<std::int32_t> levels;
  const auto count = std::min(std::max(probes, 1), highest);
  for (std::int32_t i = 1; i <= count; ++i) levels.push_back(highest * i / count);
  return levels;
}

// Where there is no finite value, one far above all others, so that sums of guesses stay numbers.
std::vector<double> finite(std::vector<double> objectives) {
  double highest = objectives.front();
  for (const double objective : objectives)
    if (std::isfinite(objective)) highest = std::max(highest, objective);
  const double hopeless = objectives.front() + kHopeless * (1 + highest - objectives.front());
  for (auto& objective : objectives)
    if (!std::isfinite(objective)) objective = hopeless;
  return objectives;
}

}  // namespace

Proxy::Proxy(const Space& space) : pairs_(space.units.size() * space.units.size(), 0.0) {
  for (const auto& unit : space.units) {
    additions_.emplace_back(unit.removed.size(), 0.0);
    auto& shares = shares_.emplace_back();
    for (const auto removed : unit.removed)
      shares.push_back(static_cast<double>(removed) / static_cast<double>(unit.removed.back()));
  }
}

Proxy Proxy::probed(const Space& space, Journal& journal, std::int32_t probes) {
  std::vector<State> states{space.whole()};
  for (std::size_t unit = 0; unit < space.units.size(); ++unit)
    for (const auto level : probed_levels(space.highest(unit), probes)) {
      states.push_back(space.whole());
      states.back()[unit] = level;
    }
  const auto objectives = finite(journal.objectives(states, 0));

  Proxy proxy(space);
  std::size_t next = 1;
  for (std::size_t unit = 0; unit < space.units.size(); ++unit) {
    const auto& removed = space.units[unit].removed;
    std::int32_t below = 0;
    for (const auto level : probed_levels(space.highest(unit), probes)) {
      const double low = proxy.addition(unit, below), high = objectives[next++] - objectives.front();
      const auto first = static_cast<double>(removed[static_cast<std::size_t>(below)]);
      const auto span = static_cast<double>(removed[static_cast<std::size_t>(level)]) - first;
      for (auto between = below + 1; between <= level; ++between) {
        const double part = (static_cast<double>(removed[static_cast<std::size_t>(between)]) - first) / span;
        proxy.set(unit, between, low + (high - low) * part);
      }
      below = level;
    }
    if (probed_levels(space.highest(unit), probes).size() == 2) proxy.bend(unit, removed);
  }
  return proxy;
}

std::int64_t Proxy::evaluations(const Space& space, std::int32_t probes) {
  std::int64_t count = 1;  // the whole model
  for (std::size_t unit = 0; unit < space.units.size(); ++unit)
    count += std::ssize(probed_levels(space.highest(unit), probes));
  return count;
}

// Removing half costs less than half: where two probes show that, a parabola through 0 and both is the better
// guess between them.  Never below 0, because nothing was seen there.
void Proxy::bend(std::size_t unit, const std::vector<std::int64_t>& removed) {
  auto& additions = additions_[unit];
  const auto middle = (removed.size() - 1) / 2;
  const auto x1 = static_cast<double>(removed[middle]), x2 = static_cast<double>(removed.back());
  const double first = additions[middle] / x1, second = (additions.back() - additions[middle]) / (x2 - x1);
  if (second <= first || first <= 0) return;
  for (std::size_t level = 1; level + 1 < removed.size(); ++level) {
    const auto x = static_cast<double>(removed[level]);
    additions[level] = std::max(0.0, first * x + (second - first) / x2 * x * (x - x1));
  }
}

// Each pair that the step changes: its index, and by how much the product of what is removed of both changes.
template <typename Visit>
void Proxy::visit_pairs(const State& from, const State& to, Visit visit) const {
  const auto units = from.size();
  for (std::size_t unit = 0; unit < units; ++unit) {
    if (from[unit] == to[unit]) continue;
    for (std::size_t other = 0; other < units; ++other) {
      if (other == unit || (other < unit && from[other] != to[other])) continue;  // seen from the other
      const double change = share(unit, to[unit]) * share(other, to[other]) -
                            share(unit, from[unit]) * share(other, from[other]);
      if (change != 0) visit(std::min(unit, other) * units + std::max(unit, other), change);
    }
  }
}

double Proxy::difference(const State& from, const State& to) const {
  double sum = 0;
  for (std::size_t unit = 0; unit < from.size(); ++unit)
    if (from[unit] != to[unit]) sum += addition(unit, to[unit]) - addition(unit, from[unit]);
  visit_pairs(from, to, [&](std::size_t pair, double change) { sum += pairs_[pair] * change; });
  return sum;
}

void Proxy::learn(std::vector<Measured> measured) {
  for (auto& one : measured)
    if (std::isfinite(one.difference)) measured_.push_back(std::move(one));
  for (int pass = 0; pass < kPasses; ++pass)
    for (auto one = measured_.rbegin(); one != measured_.rend(); ++one) correct(*one);
}

void Proxy::correct(const Measured& measured) {
  const auto& [from, to, measured_difference] = measured;
  double squares = 0;
  for (std::size_t unit = 0; unit < from.size(); ++unit)
    if (from[unit] != to[unit]) squares += (from[unit] > 0 ? 1 : 0) + (to[unit] > 0 ? 1 : 0);
  visit_pairs(from, to, [&](std::size_t, double change) { squares += change * change; });
  if (squares == 0) return;
  const double step = kLearningRate * (measured_difference - difference(from, to)) / squares;
  for (std::size_t unit = 0; unit < from.size(); ++unit) {
    if (from[unit] == to[unit]) continue;
    if (to[unit] > 0) additions_[unit][static_cast<std::size_t>(to[unit])] += step;
    if (from[unit] > 0) additions_[unit][static_cast<std::size_t>(from[unit])] -= step;
  }
  visit_pairs(from, to, [&](std::size_t pair, double change) { pairs_[pair] += step * change; });
}

}  // namespace retort::search
