#pragma once
// A guess of the objective, cheap enough for whole neighbourhoods: each unit at each level adds something of
// its own, and each pair of units something more, in proportion to how much of both is removed.  It decides
// what is evaluated, never what is accepted, and learns from every evaluation.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "retort/search/journal.h"
#include "retort/search/space.h"

namespace retort::search {

class Proxy {
 public:
  /// Guesses 0 everywhere.
  explicit Proxy(const Space& space);

  /// Learns from the objectives of single units: the highest level and `probes` - 1 in between are
  /// evaluated at rung 0, the levels between them are interpolated in the parameters removed, with
  /// two probes by a parabola where it is convex.  An objective that is not finite counts as one
  /// far above all others.
  static Proxy probed(const Space& space, Journal& journal, std::int32_t probes);
  /// The evaluations that this takes.
  static std::int64_t evaluations(const Space& space, std::int32_t probes);

  double addition(std::size_t unit, std::int32_t level) const {
    return additions_[unit][static_cast<std::size_t>(level)];
  }
  void set(std::size_t unit, std::int32_t level, double addition) {
    additions_[unit][static_cast<std::size_t>(level)] = addition;
  }
  /// The guess for `to` minus that for `from`.
  double difference(const State& from, const State& to) const;

  struct Measured {
    State from, to;
    double difference = 0;
  };
  /// Goes a few times over all that was ever measured, the newest first, and spreads half of each error
  /// evenly over what the guess is made of.  Source: normalised least mean squares (Widrow & Hoff 1960;
  /// Kaczmarz 1937).  Differences that are not finite teach nothing.
  void learn(std::vector<Measured> measured);

 private:
  void bend(std::size_t unit, const std::vector<std::int64_t>& removed);
  void correct(const Measured& measured);
  template <typename Visit>
  void visit_pairs(const State& from, const State& to, Visit visit) const;

  double share(std::size_t unit, std::int32_t level) const {
    return shares_[unit][static_cast<std::size_t>(level)];
  }

  std::vector<std::vector<double>> additions_;  // by unit and level; 0 at level 0
  std::vector<std::vector<double>> shares_;     // of the unit that a level removes, 0 to 1
  std::vector<double> pairs_;                   // by both units, the lower first: what removing both adds
  std::vector<Measured> measured_;
};

}  // namespace retort::search
