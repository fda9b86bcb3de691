#pragma once
// A smaller model inside a larger one: which blocks, KV groups, MLP channels and hidden features stay.
// Everything else (shapes, parameter count, masks, slices) follows from it.  A KV group is one key and value
// head with the query heads that use it.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "retort/architecture/config.h"

namespace retort::compress {

struct Candidate {
  std::vector<std::int64_t> blocks;                 ///< kept blocks of the input model, rising
  std::vector<std::vector<std::int64_t>> channels;  ///< of each kept block, rising; none: no MLP
  /// KV groups that are left, rising, of the kept blocks that lost some; none: no attention.
  std::map<std::int64_t, std::vector<std::int64_t>> groups = {};
  std::vector<std::int64_t> hidden = {};  ///< kept hidden features, rising; empty: all

  /// The kept channels of a block of the input model; null when the block is dropped.
  const std::vector<std::int64_t>* find(std::int64_t block) const;
  /// Whether a kept block of the input model keeps at least a part of its attention.
  bool attends(std::int64_t block) const;
  bool operator==(const Candidate&) const = default;
};

/// 0 to count - 1.
std::vector<std::int64_t> counted(std::int64_t count);

/// The whole model.
Candidate whole(const architecture::Config& config);
Candidate without_block(const Candidate& candidate, std::int64_t block);
/// The `count` of `numbers` with the highest score (ties: the lower number), rising.  scores: by number.
std::vector<std::int64_t> highest(std::vector<std::int64_t> numbers, std::int64_t count,
                                  const std::vector<double>& scores);
/// The `width` channels of each kept block with the highest score (ties: the lower number), of those still
/// kept. scores: per block of the input model, one value per channel of the input.
Candidate narrowed(const Candidate& candidate, std::int64_t width,
                   const std::vector<std::vector<double>>& scores);

/// With these KV groups of a kept block, rising, or with these channels; a block that has neither is dropped.
Candidate with_groups(const architecture::Config& input, const Candidate& candidate, std::int64_t block,
                      std::vector<std::int64_t> groups);
Candidate with_channels(const architecture::Config& input, const Candidate& candidate, std::int64_t block,
                        std::vector<std::int64_t> channels);

/// The KV groups that a block of the input model keeps; none when it has no attention, or it is dropped.
std::vector<std::int64_t> kept_groups(const architecture::Config& input, const Candidate& candidate,
                                      std::int64_t block);

/// Rows of the heads in `groups`, when each group has `width` of them.
std::vector<std::int64_t> rows_of(const std::vector<std::int64_t>& groups, std::int64_t width);
/// The inputs of o_proj that a block of the input model keeps.
std::vector<std::int64_t> kept_attention(const architecture::Config& input, const Candidate& candidate,
                                         std::int64_t block);

/// A smaller hidden size makes eps larger in the same proportion, because RMSNorm then divides a sum over
/// the same features by a smaller number; see surgery.h.
architecture::Config config_of(const architecture::Config& input, const Candidate& candidate);
/// Unique saved parameters.
std::int64_t parameters_of(const architecture::Config& input, const Candidate& candidate);

/// The same for equal candidates, on every machine and in every release: a key for stored results.
std::string stable_hash(const Candidate& candidate);

}  // namespace retort::compress
