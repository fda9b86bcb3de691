#pragma once
// A model's removable parts as the units of a search, and its states as candidates.

#include <cstdint>
#include <vector>

#include "retort/prune/candidate.h"
#include "retort/prune/influence.h"
#include "retort/prune/options.h"
#include "retort/search/proxy.h"
#include "retort/search/space.h"

namespace retort::prune {

class ModelSpace {
 public:
  /// `channel_scores`: per block, one value per channel; a narrower MLP keeps the channels with the highest.
  /// A state is feasible from `target` down to `target` - tolerance * the model's parameters.  Throws
  /// UsageError: a target that the units cannot reach; uniform units for blocks that differ.
  ModelSpace(const architecture::Config& input, const PruneOptions& options, std::int64_t target,
             std::vector<std::vector<double>> channel_scores);

  ModelSpace(const ModelSpace&) = delete;  // the space refers to this object
  ModelSpace& operator=(const ModelSpace&) = delete;

  const search::Space& space() const { return space_; }
  Candidate candidate(const search::State& state) const;
  /// Scores for one_shot: the influence of what a level removes, of a width in proportion.
  search::Proxy proxy_of(const std::vector<Influence>& influences) const;
  /// The share of the whole model's matrix products that a token still passes in the blocks.
  double work(const search::State& state) const;

 private:
  struct Part {
    enum class Kind { block, attention, mlp, width } kind;
    std::int64_t block;                ///< -1 for width
    std::vector<std::int64_t> widths;  ///< by level, of mlp and width
  };
  void add(Part part, const std::string& name);
  std::int64_t parameters(const search::State& state) const;
  Candidate narrowed_block(const Candidate& candidate, std::int64_t block, std::int64_t width) const;

  architecture::Config input_;
  std::vector<std::vector<std::int64_t>> ranked_;  ///< per block, channels by score, the highest first
  std::vector<Part> parts_;
  search::Space space_;
};

}  // namespace retort::prune
