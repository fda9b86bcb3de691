#pragma once
// A model's removable parts as the units of a search, and its states as candidates.

#include <cstdint>
#include <optional>
#include <vector>

#include "retort/architecture/kept.h"
#include "retort/calibrate/influence.h"
#include "retort/calibrate/ranking.h"
#include "retort/prune/options.h"
#include "retort/search/proxy.h"
#include "retort/search/space.h"

namespace retort::prune {

class ModelSpace {
 public:
  /// `scores`: a narrower MLP, attention or hidden state keeps what has the highest; those that are empty
  /// count as equal.
  /// A state is feasible from `target` down to `target` - tolerance * the model's parameters.  Units that are
  /// few and large may reach no size there: then their nearest size takes the target's place.  Throws
  /// UsageError: a target below what any units leave; uniform units for blocks that differ.
  ModelSpace(const architecture::Config& input, const PruneOptions& options, std::int64_t target,
             const calibrate::UnitScores& scores);

  ModelSpace(const ModelSpace&) = delete;  // the space refers to this object
  ModelSpace& operator=(const ModelSpace&) = delete;

  const search::Space& space() const { return space_; }
  /// Returns the size that took the target's place.
  std::optional<std::int64_t> nearest_size() const { return nearest_size_; }
  architecture::Kept candidate(const search::State& state) const;
  /// Returns scores for one_shot: the influence of what a level removes; a width has its
  /// proportion.
  search::Proxy proxy_of(const std::vector<calibrate::Influence>& influences) const;
  /// The share of the whole model's matrix products that a token still passes in the blocks.
  double work(const search::State& state) const;

 private:
  struct Removable {
    std::optional<architecture::PartKind> part = {};  ///< none: the whole block
    std::int64_t block = -1;                          ///< -1: every block alike, or the whole model
    std::vector<std::int64_t> widths = {};            ///< how many of the part each level leaves
  };
  void add_uniform(const PruneOptions& options);
  void count_together();  // where what units remove does not add up
  void add_by_block(const PruneOptions& options, std::int64_t block);
  void add(Removable removable, const std::string& name);
  void require_enough(std::int64_t all) const;
  void take_nearest(std::int64_t all);
  bool admits(const search::State& state) const;
  std::int64_t parameters(const search::State& state) const;
  architecture::Kept applied(const architecture::Kept& candidate, const Removable& removable,
                             std::int32_t level) const;

  architecture::Config input_;
  calibrate::UnitScores scores_;
  std::vector<Removable> removables_;
  search::Space space_;
  std::optional<std::int64_t> nearest_size_;
};

}  // namespace retort::prune
