#pragma once
// Finds a rank whose own work takes longer than that of the others, step after step: a slow machine.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "retort/shard/phases.h"

namespace retort::train {

/// What a rank did in a step.
struct RankStep {
  double sequences = 0;  ///< that it had; 0: it only waited for others
  shard::PerPhase seconds = {};
};

/// A rank that was slower than the others in two windows of steps, one after the other.
struct Straggler {
  int rank = 0;
  shard::Phase phase = shard::Phase::data;
  double seconds = 0;  ///< of the phase for a sequence, in its median step
  double others_seconds = 0;
};

class Stragglers {
 public:
  explicit Stragglers(int ranks)
      : ranks_(ranks), suspects_(static_cast<std::size_t>(ranks)), told_(suspects_.size()) {}

  /// Takes a step of all ranks, who have the same shares in every step; returns ranks that were not told of
  /// before.  Seconds for a sequence are compared, among ranks that have some, and only in phases in which a
  /// rank does not wait for others.
  std::vector<Straggler> add(std::span<const RankStep> of_ranks);

 private:
  static constexpr std::size_t kWindow = 20;  // steps
  static constexpr double kSlower = 1.5;      // times the median of the others
  static constexpr double kShare = 0.05;      // and by so much of a step

  double sequences_of(int rank) const;
  double median_of(int rank, shard::Phase phase) const;
  std::vector<int> working_ranks() const;
  double others_median(std::span<const int> working, int rank, shard::Phase phase) const;
  std::optional<Straggler> slow_in_window(std::span<const int> working, int rank) const;

  int ranks_;
  std::vector<std::vector<RankStep>> window_;  // by step, then rank
  std::vector<bool> suspects_, told_;
};

/// "rank 3 is slow: head takes 0.310 s a sequence, 1.9 times as long as on the others; ..."
std::string described(const Straggler& straggler);

}  // namespace retort::train
