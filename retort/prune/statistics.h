#pragma once
// What the channels of an MLP do on calibration text: sums over tokens, so that parts merge by adding, in
// float64.
//
// Shape legend: N tokens, I width of the MLP.

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

  /// Adds the inputs of down_proj.  Throws ValidationError naming `who` when a sum is not finite.
  void add(const at::Tensor& channels_NI, const std::string& who);
  /// Adds the statistics of other tokens; the result depends on the order only by rounding.
  void merge(const ChannelStatistics& other);
};

}  // namespace retort::prune
