#include "retort/prune/importance.h"

#include <ATen/ATen.h>

namespace retort::prune {

at::Tensor wanda_score(const ChannelStatistics& statistics, const at::Tensor& down_DI) {
  return down_DI.abs().sum(at::IntArrayRef{0}, /*keepdim=*/false, at::kDouble) * statistics.squares_I.sqrt();
}

at::Tensor activation_score(const ChannelStatistics& statistics, const at::Tensor&) {
  return statistics.absolute_I / static_cast<double>(statistics.tokens);
}

std::vector<double> channel_scores(const ChannelScore& score, const ChannelStatistics& statistics,
                                   const at::Tensor& down_DI) {
  const auto values_I = score(statistics, down_DI).to(at::kCPU).to(at::kDouble).contiguous();
  const auto* begin = values_I.const_data_ptr<double>();
  return {begin, begin + values_I.numel()};
}

}  // namespace retort::prune
