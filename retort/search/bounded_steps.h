#pragma once
// Steps from one state whose objectives are known between two bounds, and exactly where it is asked for.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "retort/search/compared.h"
#include "retort/search/journal.h"

namespace retort::search {

/// The objective at `rung` is a lower bound, that at the next rung an upper bound, and that at the last one
/// exact.  While the first two of an order may change places, both are measured exactly, and the state that
/// all steps begin at as well.
class BoundedSteps {
 public:
  /// References live as long as this.
  BoundedSteps(Journal& journal, const State& from, std::int32_t rung);

  /// Measures both bounds of each.
  void add(std::span<const State> steps);
  /// The step with the least rise per parameter that it removes; of equals the first.
  std::size_t cheapest();
  /// Of the steps that end within the bounds of the space, one at least, the least objective.
  std::size_t least_feasible();

  const State& from() const { return from_; }
  const std::vector<State>& states() const { return states_; }
  /// As it is known by now: exact, or the lower bound.
  Step step(std::size_t number) const;
  bool is_exact(std::size_t number) const { return is_exact(states_[number]); }
  std::int64_t removed(std::size_t number) const { return removed_[number]; }

 private:
  bool is_exact(const State& state) const;
  double low(const State& state) const;
  double high(const State& state) const;
  void measure_exactly(const State& state);
  template <typename Admitted, typename Value, typename MayBeLess>
  std::size_t least(Admitted admitted, Value value, MayBeLess may_be_less);

  Journal& journal_;
  const State& from_;
  std::int32_t rung_;
  std::vector<State> states_;
  std::vector<std::int64_t> removed_;  // by each
};

}  // namespace retort::search
