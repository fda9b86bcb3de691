#pragma once
// A model's removable parts as the units of a search, and its states as candidates.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "retort/architecture/kept.h"
#include "retort/calibrate/influence.h"
#include "retort/calibrate/ranking.h"
#include "retort/prune/options.h"
#include "retort/prune/size.h"
#include "retort/search/proxy.h"
#include "retort/search/space.h"

namespace retort::prune {

/// What a step of one unit does: it drops a block, or narrows a part to a width.
struct Move {
  std::optional<architecture::PartKind> part = {};  ///< none: the block goes
  std::int64_t block = -1;                          ///< number in the input; -1: all blocks alike
  std::int64_t width = -1;                          ///< how many of the part each block has afterwards
};
/// "drop block 3", "narrow MLPs to 448"
std::string describe(const Move& move);

class ModelSpace {
 public:
  /// `scores`: a narrower MLP, attention or hidden state keeps what has the highest; those that are empty
  /// count as equal.
  /// A state is feasible from `target` down to `target` - tolerance * the model's size.  Units that are few
  /// and large may reach no size there: then their nearest size takes the target's place.  Throws
  /// UsageError: a target below what any units leave; uniform units for blocks that differ.
  ModelSpace(const architecture::Config& input, const PruneOptions& options, std::int64_t target,
             const calibrate::UnitScores& scores, Size size = {});

  ModelSpace(const ModelSpace&) = delete;  // the space refers to this object
  ModelSpace& operator=(const ModelSpace&) = delete;

  const search::Space& space() const { return space_; }
  /// Returns the size that took the target's place.
  std::optional<std::int64_t> nearest_size() const { return nearest_size_; }
  architecture::Kept candidate(const search::State& state) const;
  /// From here on, states beyond `state` keep what it keeps, and of that what has the highest of these
  /// scores.
  void rank_again(const search::State& state, const calibrate::UnitScores& scores);
  /// What one unit does between two states that differ in it alone.
  Move move(const search::State& from, const search::State& to) const;
  /// The unit that narrows the MLPs of all blocks alike; empty: none does.
  std::optional<std::size_t> unit_of_all_channels() const;
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
  void require_enough() const;
  void take_nearest();
  void take_scores(const calibrate::UnitScores& scores);
  bool admits(const search::State& state) const;
  std::int64_t size_of(const architecture::Kept& candidate) const;
  architecture::Kept applied(const architecture::Kept& candidate, const Removable& removable,
                             std::int32_t level) const;

  architecture::Config input_;
  Size size_;
  std::int64_t all_;  ///< size of the input
  calibrate::UnitScores scores_;
  search::State ranked_state_;  // whose parts the scores are of; empty: the whole model
  architecture::Kept ranked_;
  std::vector<Removable> removables_;
  search::Space space_;
  std::optional<std::int64_t> nearest_size_;
};

}  // namespace retort::prune
