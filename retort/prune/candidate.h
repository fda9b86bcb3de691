#pragma once
// A smaller model inside a larger one: which blocks, attentions and MLP channels stay.  Everything else
// (shapes, parameter count, masks, slices) follows from it.

#include <cstdint>
#include <string>
#include <vector>

#include "retort/architecture/config.h"

namespace retort::prune {

struct Candidate {
  std::vector<std::int64_t> blocks;                  ///< kept blocks of the input model, rising
  std::vector<std::vector<std::int64_t>> channels;   ///< of each kept block, rising; none: no MLP
  std::vector<std::int64_t> without_attention = {};  ///< kept blocks whose attention is dropped, rising

  /// The kept channels of a block of the input model; null when the block is dropped.
  const std::vector<std::int64_t>* find(std::int64_t block) const;
  /// Whether a kept block of the input model keeps its attention.
  bool attends(std::int64_t block) const;
  bool operator==(const Candidate&) const = default;
};

/// Width of a dense MLP, 0 without one.
std::int64_t mlp_width(const architecture::Block& block);

/// The whole model.
Candidate whole(const architecture::Config& config);
Candidate without_block(const Candidate& candidate, std::int64_t block);
/// The `width` channels of each kept block with the highest score (ties: the lower number), of those still
/// kept. scores: per block of the input model, one value per channel of the input.
Candidate narrowed(const Candidate& candidate, std::int64_t width,
                   const std::vector<std::vector<double>>& scores);

/// Without the attention of a kept block, or without its MLP; a block that has neither is dropped.
Candidate without_attention(const architecture::Config& input, const Candidate& candidate,
                            std::int64_t block);
Candidate with_channels(const architecture::Config& input, const Candidate& candidate, std::int64_t block,
                        std::vector<std::int64_t> channels);

architecture::Config config_of(const architecture::Config& input, const Candidate& candidate);
/// Unique saved parameters.
std::int64_t parameters_of(const architecture::Config& input, const Candidate& candidate);

/// The same for equal candidates, on every machine and in every release: a key for stored results.
std::string stable_hash(const Candidate& candidate);

}  // namespace retort::prune
