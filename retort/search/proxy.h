#pragma once
// An additive guess of the objective, cheap enough for whole neighbourhoods: each unit at each level adds
// something of its own.  It decides what is evaluated, never what is accepted, and learns from every
// evaluation.

#include <cstdint>
#include <vector>

#include "retort/search/journal.h"
#include "retort/search/space.h"

namespace retort::search {

class Proxy {
 public:
  /// All additions 0.
  explicit Proxy(const Space& space);

  /// From the objectives of single units: the highest level and `probes` - 1 in between are evaluated at rung
  /// 0, the levels between them are interpolated in the parameters removed, with two probes by a parabola
  /// where it is convex.
  static Proxy probed(const Space& space, Journal& journal, std::int32_t probes);

  double addition(std::size_t unit, std::int32_t level) const {
    return additions_[unit][static_cast<std::size_t>(level)];
  }
  void set(std::size_t unit, std::int32_t level, double addition) {
    additions_[unit][static_cast<std::size_t>(level)] = addition;
  }
  /// The guess for `to` minus that for `from`.
  double difference(const State& from, const State& to) const;
  /// Half of the error of a measured difference is spread over the units that differ.
  void learn(const State& from, const State& to, double measured_difference);

 private:
  void bend(std::size_t unit, const std::vector<std::int64_t>& removed);
  std::vector<std::vector<double>> additions_;
};

}  // namespace retort::search
