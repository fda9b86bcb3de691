#pragma once
// A row of packed tokens as the blocks see it.
//
// Shape legend: N tokens of all sequences of a micro-batch, one after the other.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/ops/elementwise.h"

namespace retort::model {

/// How the heads of some attentions are turned by position.
struct Turning {
  ops::Rotary rotary;
  at::Tensor query_factor_N;  ///< undefined where queries do not grow
};

/// Frequencies of rotary embeddings on the devices that turn by them.  Each is copied there once and kept, so
/// that no later batch waits for a copy.
class RopeFrequencies {
 public:
  /// As rope_frequencies() has them, float32 on `device`.
  at::Tensor of(const architecture::Rope& rope, std::int64_t head_dim, std::int64_t context,
                std::int64_t length, at::Device device);

 private:
  struct Known {
    architecture::Rope rope;
    std::int64_t head_dim, context, length;  // length: one of those with the same angles
    at::Tensor frequencies_R2;
  };
  std::vector<Known> known_;
};

/// Where documents start and at which position each token stands; attention stays inside a segment.
struct TokenLayout {
  std::vector<std::int64_t> starts;  ///< first token of each segment, rising from 0; last N
  std::map<std::pair<std::size_t, std::int64_t>, Turning> turnings;  ///< by rotary embedding and head_dim

  std::int64_t tokens() const { return starts.back(); }
  /// Of an attention; null where it is not told positions.
  const Turning* turning(const architecture::Attention& attention) const;
};

/// `starts` as in TokenLayout; positions begin at 0 in each segment.  Embeddings that stretch with the length
/// of a document do so by segment.  Where `frequencies` knows what it takes, no processor waits for the
/// device.
TokenLayout make_token_layout(const architecture::Config& config, std::vector<std::int64_t> starts,
                              at::Device device, RopeFrequencies& frequencies);
/// The same of a batch that is the only one.
TokenLayout make_token_layout(const architecture::Config& config, std::vector<std::int64_t> starts,
                              at::Device device);
/// Tokens of one text: `count` of them, the first at `position`, turned as in a document of `length` tokens.
struct TextPart {
  std::int64_t position, count, length;
};
/// Of parts of several texts, one after the other; each is a segment.
TokenLayout layout_of_parts(const architecture::Config& config, std::span<const TextPart> parts,
                            at::Device device, RopeFrequencies& frequencies);

/// int64 tensor on a device.
at::Tensor index_tensor(std::span<const std::int64_t> values, at::Device device);
at::Tensor index_tensor(std::span<const std::int32_t> values, at::Device device);

}  // namespace retort::model
