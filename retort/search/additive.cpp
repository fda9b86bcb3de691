#include "retort/search/additive.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <ranges>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/index.h"
#include "retort/search/neighbourhood.h"

namespace retort::search {
namespace {

// A range is then a few channels of an MLP at most.
constexpr std::int64_t kMostRanges = std::int64_t{1} << 17;
constexpr double kUnreachable = std::numeric_limits<double>::infinity();

// What the units at their highest levels remove, at most what may be removed.
std::int64_t most_useful(const Space& space) {
  std::int64_t all = 0;
  for (const auto& unit : space.units) all += unit.removed.back();
  return std::min(all, space.most_removed);
}

// Sums of removals in ranges of one width, one of which begins at the lower bound.
class Ranges {
 public:
  explicit Ranges(const Space& space)
      : width_(std::max(common_divisor(space), most_useful(space) / kMostRanges + 1)),
        offset_((width_ - space.least_removed % width_) % width_),
        count_(range_of(most_useful(space)) + 1) {}

  std::size_t count() const { return count_; }
  std::size_t range_of(std::int64_t removed) const { return base::to_size((removed + offset_) / width_); }

 private:
  std::int64_t width_, offset_;
  std::size_t count_;
};

// The best choice of the units so far whose removals lie in one range.
struct Cell {
  double sum = kUnreachable;
  std::int64_t removed = 0;
};

[[noreturn]] void refuse(const Space& space) {
  throw base::UsageError(base::join("search: no choice of units was found that removes ", space.least_removed,
                                    " to ", space.most_removed,
                                    " parameters; widen the bounds or make levels finer."));
}

}  // namespace

State least_additive(const Space& space, const Proxy& scores) {
  base::require<base::UsageError>(
      !space.removed_together,
      "search: the exact additive choice needs units whose parameters add up; choose "
      "sizes per layer, or another method.");
  const Ranges ranges(space);
  std::vector<Cell> cells(ranges.count());
  cells[ranges.range_of(0)].sum = 0;
  std::vector<std::vector<std::int32_t>> chosen;  // [unit][range]: the level that ends there
  for (std::size_t unit = 0; unit < space.units.size(); ++unit) {
    std::vector<Cell> with(cells.size());
    auto& levels = chosen.emplace_back(cells.size(), 0);
    // From the highest, so that of equals the one with the lowest level comes first.
    for (const auto& cell : std::views::reverse(cells)) {
      if (cell.sum == kUnreachable) continue;
      for (std::int32_t level = 0; level <= space.highest(unit); ++level) {
        const auto removed = cell.removed + space.units[unit].removed[base::to_size(level)];
        if (removed > space.most_removed) break;
        const Cell next{cell.sum + scores.addition(unit, level), removed};
        const auto range = ranges.range_of(removed);
        if (next.sum >= with[range].sum) continue;
        with[range] = next;
        levels[range] = level;
      }
    }
    cells = std::move(with);
  }
  if (most_useful(space) < space.least_removed) refuse(space);
  const auto first = cells.begin() + static_cast<std::ptrdiff_t>(ranges.range_of(space.least_removed));
  auto best =
      std::min_element(first, cells.end(), [](const Cell& a, const Cell& b) { return a.sum < b.sum; });
  // Bounds narrower than a range may have lost what lies between them: the nearest below is repaired.
  while (best->sum == kUnreachable) best = best < first ? best - 1 : first - 1;
  auto removed = best->removed;
  auto state = space.whole();
  for (std::size_t unit = space.units.size(); unit-- > 0;) {
    state[unit] = chosen[unit][ranges.range_of(removed)];
    removed -= space.units[unit].removed[base::to_size(state[unit])];
  }
  if (auto admitted = repaired(space, std::move(state), scores)) return *std::move(admitted);
  refuse(space);
}

State one_shot(const Space& space, const Proxy& scores) {
  auto state = space.whole();
  while (space.removed(state) < space.least_removed) {
    std::optional<std::size_t> best;
    double least = kUnreachable;
    for (std::size_t unit = 0; unit < state.size(); ++unit) {
      auto next = state;
      if (++next[unit] > space.highest(unit) || space.removed(next) > space.most_removed) continue;
      const auto gone = static_cast<double>(space.removed(next) - space.removed(state));
      const double score = scores.difference(state, next) / gone;
      if (gone <= 0 || score >= least) continue;
      least = score;
      best = unit;
    }
    if (!best) {
      if (auto mended = repaired(space, state, scores)) return *std::move(mended);
      if (space.removed_together) refuse(space);
      return least_additive(space, scores);
    }
    ++state[*best];
  }
  return state;
}

}  // namespace retort::search
