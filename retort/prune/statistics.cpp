#include "retort/prune/statistics.h"

#include <ATen/ATen.h>

#include "retort/base/error.h"

namespace retort::prune {

void ChannelStatistics::add(const at::Tensor& channels_NI, const std::string& who) {
  ChannelStatistics part;
  part.tokens = channels_NI.size(0);
  const auto absolute_NI = channels_NI.abs();
  part.absolute_I = absolute_NI.sum(at::IntArrayRef{0}, /*keepdim=*/false, at::kDouble);
  part.sum_I = channels_NI.sum(at::IntArrayRef{0}, /*keepdim=*/false, at::kDouble);
  part.maximum_I = absolute_NI.amax(0).to(at::kDouble);
  // Squares of bfloat16 and float32 are made in float32 at least; a channel whose square overflows that is
  // reported.
  const auto wide_NI = absolute_NI.scalar_type() == at::kDouble ? absolute_NI : absolute_NI.to(at::kFloat);
  part.squares_I = wide_NI.square().sum(at::IntArrayRef{0}, /*keepdim=*/false, at::kDouble);
  base::require<base::ValidationError>(
      part.squares_I.isfinite().all().item<bool>(), who,
      ": activations on the calibration text are not finite (NaN or infinity); "
      "the model is damaged or its compute type too narrow, use float32.");
  merge(part);
}

void ChannelStatistics::merge(const ChannelStatistics& other) {
  if (!other.absolute_I.defined()) return;
  if (!absolute_I.defined()) {
    *this = {other.tokens, other.absolute_I.clone(), other.sum_I.clone(), other.squares_I.clone(),
             other.maximum_I.clone()};
    return;
  }
  tokens += other.tokens;
  absolute_I.add_(other.absolute_I);
  sum_I.add_(other.sum_I);
  squares_I.add_(other.squares_I);
  maximum_I = at::maximum(maximum_I, other.maximum_I);
}

}  // namespace retort::prune
