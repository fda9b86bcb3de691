#pragma once
// What the inputs of a linear layer do on calibration text: sums over tokens in float64, so that the sums of
// two texts add up to those of both.
//
// Shape legend: N tokens, I inputs of the layer, B buckets of the histogram.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>

#include "retort/calibrate/hessian.h"

namespace retort::calibrate {

struct InputStatistics {
  std::int64_t tokens = 0;
  at::Tensor absolute_I;          ///< sum of |a|, float64; undefined before the first tokens
  at::Tensor sum_I;               ///< sum of a, float64
  at::Tensor squares_I;           ///< sum of a^2, float64
  at::Tensor maximum_I;           ///< max |a|, float64
  at::Tensor sequence_squares_I;  ///< sum over sequences of the square of the mean |a|, float64

  /// Collected when it is set before the first tokens: the histogram of |a| * scale, see histogram.h.  With
  /// the norm of the weight's column as scale, it counts what the input adds to the layer's output.
  at::Tensor scale_I;
  at::Tensor counts_IB;  ///< int64

  bool with_products = false;  ///< set before the first tokens: collects `hessian`
  HessianSums hessian;
  at::Tensor gradient_I;  ///< sum of a * dL/da, float64; whoever runs a backward pass sets it

  /// Adds inputs of the layer; `sequence_starts`: first row of each sequence, rising from 0, empty for a
  /// single sequence.  Throws ValidationError naming `who` when a sum is not finite.
  void add(const at::Tensor& inputs_NI, const std::string& who,
           std::span<const std::int64_t> sequence_starts = {});
  /// Adds the statistics of other tokens; the result depends on the order only by rounding.
  void merge(const InputStatistics& other);
};

/// The statistics as if |a| of each channel had been cut at its `quantile`, in (0, 1]; 1: unchanged.  Sums
/// are multiplied by what the histogram says of cut to whole, so a channel that has no outliers does not
/// change; the sum becomes what leaves the variance that is left.  Maximum and gradient stay.  Needs the
/// histogram below 1.
InputStatistics winsorised(const InputStatistics& statistics, double quantile);

}  // namespace retort::calibrate
