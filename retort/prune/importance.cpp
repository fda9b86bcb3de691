#include "retort/prune/importance.h"

#include <ATen/ATen.h>

namespace retort::prune {

at::Tensor wanda_score(const ChannelStatistics& statistics, const at::Tensor& down_DI) {
  return down_DI.abs().sum(at::IntArrayRef{0}, /*keepdim=*/false, at::kDouble) * statistics.squares_I.sqrt();
}

at::Tensor activation_score(const ChannelStatistics& statistics, const at::Tensor&) {
  return statistics.absolute_I / static_cast<double>(statistics.tokens);
}

at::Tensor fluctuation_score(const ChannelStatistics& statistics, const at::Tensor& down_DI) {
  const auto tokens = static_cast<double>(statistics.tokens);
  const auto variance_I = (statistics.squares_I / tokens - (statistics.sum_I / tokens).square()).clamp_min(0);
  return variance_I * down_DI.to(at::kDouble).square().sum(at::IntArrayRef{0});
}

ChannelScore score_of(ChannelRanking ranking) {
  switch (ranking) {
    case ChannelRanking::activation:
      return activation_score;
    case ChannelRanking::fluctuation:
      return fluctuation_score;
    case ChannelRanking::wanda:
      break;
  }
  return wanda_score;
}

std::vector<double> channel_scores(const ChannelScore& score, const ChannelStatistics& statistics,
                                   const at::Tensor& down_DI) {
  const auto values_I = score(statistics, down_DI).to(at::kCPU).to(at::kDouble).contiguous();
  const auto* begin = values_I.const_data_ptr<double>();
  return {begin, begin + values_I.numel()};
}

}  // namespace retort::prune
