#pragma once
// What a search chooses from: a row of units, each at one of several levels, and a window for what they may
// remove together.  Nothing here knows a model: the same searches serve blocks, parts of blocks and widths.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace retort::search {

/// The level of each unit.  Level 0 keeps all of the unit, a higher one keeps less.
using State = std::vector<std::int32_t>;

struct Unit {
  std::string name;                   ///< "block 3 attention"
  std::vector<std::int64_t> removed;  ///< parameters that each level removes, rising from 0
};

struct Space {
  std::vector<Unit> units;
  std::int64_t least_removed = 0;  ///< a state within these bounds is feasible
  std::int64_t most_removed = 0;
  /// Set where the units do not simply add up, for example when one width serves all blocks.
  std::function<std::int64_t(const State&)> removed_together;

  /// Set where some states are no models at all, for example without any attention.
  std::function<bool(const State&)> admits;

  std::int64_t removed(const State& state) const;
  /// Whether it is a state of this space, feasible or not.
  bool holds(const State& state) const;
  /// Whether a state is within the bounds and admitted.
  bool feasible(const State& state) const;
  std::int32_t highest(std::size_t unit) const {
    return static_cast<std::int32_t>(units[unit].removed.size()) - 1;
  }
  State whole() const { return State(units.size(), 0); }
};

/// Greatest common divisor of all removals.
std::int64_t common_divisor(const Space& space);

/// Sums of removals next to the lower bound: the greatest below it, 0 if there is none, and the least from it
/// on.  What the space admits is not looked at.
struct Reach {
  std::int64_t below = 0;
  std::optional<std::int64_t> from;
};
/// Empty where units do not add up, or for more than 2^20 different sums.
std::optional<Reach> reach(const Space& space);

/// Throws UsageError: no unit, a unit without levels, removals that do not rise, bounds that no state meets
/// because even all units at their highest level remove too little, or that contradict each other.
void validate(const Space& space);

}  // namespace retort::search
