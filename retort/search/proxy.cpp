#include "retort/search/proxy.h"

#include <algorithm>

namespace retort::search {
namespace {

constexpr double kLearningRate = 0.5;

// The levels to probe: the highest and others below it at equal distances.
std::vector<std::int32_t> probed_levels(std::int32_t highest, std::int32_t probes) {
  std::vector<std::int32_t> levels;
  const auto count = std::min(std::max(probes, 1), highest);
  for (std::int32_t i = 1; i <= count; ++i) levels.push_back(highest * i / count);
  return levels;
}

}  // namespace

Proxy::Proxy(const Space& space) {
  for (const auto& unit : space.units) additions_.emplace_back(unit.removed.size(), 0.0);
}

Proxy Proxy::probed(const Space& space, Journal& journal, std::int32_t probes) {
  std::vector<State> states{space.whole()};
  for (std::size_t unit = 0; unit < space.units.size(); ++unit)
    for (const auto level : probed_levels(space.highest(unit), probes)) {
      states.push_back(space.whole());
      states.back()[unit] = level;
    }
  const auto objectives = journal.objectives(states, 0);

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

double Proxy::difference(const State& from, const State& to) const {
  double sum = 0;
  for (std::size_t unit = 0; unit < from.size(); ++unit)
    if (from[unit] != to[unit]) sum += addition(unit, to[unit]) - addition(unit, from[unit]);
  return sum;
}

void Proxy::learn(const State& from, const State& to, double measured_difference) {
  std::vector<std::size_t> changed;
  for (std::size_t unit = 0; unit < from.size(); ++unit)
    if (from[unit] != to[unit]) changed.push_back(unit);
  if (changed.empty()) return;
  const double share =
      kLearningRate * (measured_difference - difference(from, to)) / static_cast<double>(changed.size());
  for (const auto unit : changed) {
    auto& additions = additions_[unit];
    // Level 0 stays at 0: what it should learn, the other end of the step learns.
    const auto old_level = static_cast<std::size_t>(from[unit]),
               new_level = static_cast<std::size_t>(to[unit]);
    if (old_level == 0) {
      additions[new_level] += share;
    } else if (new_level == 0) {
      additions[old_level] -= share;
    } else {
      additions[new_level] += share / 2;
      additions[old_level] -= share / 2;
    }
  }
}

}  // namespace retort::search
