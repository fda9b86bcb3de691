#pragma once
// What the inputs of linear layers do on calibration text, feature by feature: sums over tokens, so that
// parts merge by adding, in float64.
//
// Shape legend: N tokens, I features, for example channels of an MLP.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace retort::prune {

struct ChannelStatistics {
  std::int64_t tokens = 0;
  at::Tensor absolute_I;  ///< sum of |a|, float64; undefined before the first tokens
  at::Tensor sum_I;       ///< sum of a, float64
  at::Tensor squares_I;   ///< sum of a^2, float64
  at::Tensor maximum_I;   ///< max |a|, float64

  /// Adds the inputs of a linear layer.  Throws ValidationError naming `who` when a sum is not finite.
  void add(const at::Tensor& channels_NI, const std::string& who);
  /// Adds the statistics of other tokens; the result depends on the order only by rounding.
  void merge(const ChannelStatistics& other);
};

/// Of the inputs of one block's linear layers, by their model::Tap; empty for parts that a block lacks.
struct BlockStatistics {
  ChannelStatistics qkv_input, output_input, gate_up_input, down_input;
};

}  // namespace retort::prune
