#include "retort/calibrate/importance.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "retort/base/error.h"
#include "retort/calibrate/text.h"

namespace retort::calibrate {
namespace {

constexpr double kObsDampening = 0.01;  // of each diagonal element

ScaledInverse inverse_of(const InputStatistics& statistics) {
  return scaled_inverse(statistics.hessian, kObsDampening, "importance: obs");
}

const at::Tensor& gradient_of(const InputStatistics& statistics) {
  base::ensure(statistics.gradient_I.defined(), "taylor needs gradients");
  return statistics.gradient_I;
}

// Each group's own columns of o_proj against their block of the inverse Hessian.
at::Tensor obs_of_groups(const InputStatistics& statistics, const at::Tensor& output_DY,
                         std::int64_t groups) {
  const auto inverse = inverse_of(statistics);
  const auto columns = output_DY.size(1) / groups;
  const auto scaled_DY = output_DY.to(inverse.root_C.scalar_type()) * inverse.root_C;
  auto scores_G = at::empty({groups}, scaled_DY.options().dtype(at::kDouble));
  for (std::int64_t group = 0; group < groups; ++group) {
    const auto begin = group * columns;
    const auto part_CC = inverse.inverse_CC.narrow(0, begin, columns).narrow(1, begin, columns);
    const auto rows_CD = scaled_DY.narrow(1, begin, columns).t().contiguous();
    const auto solved_CD = at::cholesky_solve(rows_CD, at::linalg_cholesky(part_CC));
    scores_G.select(0, group).copy_(0.5 * (rows_CD * solved_CD).sum(at::kDouble));
  }
  return scores_G;
}

std::vector<double> on_host(const at::Tensor& values) {
  const auto host = values.to(at::kCPU).to(at::kDouble).contiguous();
  const auto* begin = host.const_data_ptr<double>();
  return {begin, begin + host.numel()};
}

}  // namespace

at::Tensor column_squares(const at::Tensor& weight_DI) {
  return weight_DI.to(at::kDouble).square().sum(at::IntArrayRef{0});
}

at::Tensor wanda_score(const InputStatistics& statistics, const at::Tensor& down_DI) {
  return down_DI.abs().sum(at::IntArrayRef{0}, /*keepdim=*/false, at::kDouble) * statistics.squares_I.sqrt();
}

at::Tensor activation_score(const InputStatistics& statistics, const at::Tensor&) {
  return statistics.absolute_I / static_cast<double>(statistics.tokens);
}

at::Tensor fluctuation_score(const InputStatistics& statistics, const at::Tensor& down_DI) {
  const auto tokens = static_cast<double>(statistics.tokens);
  const auto variance_I = (statistics.squares_I / tokens - (statistics.sum_I / tokens).square()).clamp_min(0);
  return variance_I * column_squares(down_DI);
}

at::Tensor minitron_score(const InputStatistics& statistics, const at::Tensor&) {
  return statistics.sequence_squares_I.sqrt();
}

at::Tensor taylor_score(const InputStatistics& statistics, const at::Tensor&) {
  return gradient_of(statistics).abs();
}

at::Tensor obs_score(const InputStatistics& statistics, const at::Tensor& down_DI) {
  const auto inverse = inverse_of(statistics);
  return 0.5 * column_squares(down_DI) * inverse.root_C.square() / inverse.inverse_CC.diagonal();
}

ChannelScore score_of(ChannelRanking ranking) {
  switch (ranking) {
    case ChannelRanking::activation:
      return activation_score;
    case ChannelRanking::fluctuation:
      return fluctuation_score;
    case ChannelRanking::minitron:
      return minitron_score;
    case ChannelRanking::taylor:
      return taylor_score;
    case ChannelRanking::obs:
      return obs_score;
    case ChannelRanking::wanda:
      break;
  }
  return wanda_score;
}

std::vector<double> channel_scores(const ChannelScore& score, const InputStatistics& statistics,
                                   const at::Tensor& down_DI) {
  return on_host(score(statistics, down_DI));
}

std::vector<double> group_scores(ChannelRanking ranking, const model::BlockWeights& weights,
                                 const InputStatistics& output_input) {
  if (!weights.shape.attention) return {};
  const auto groups = weights.shape.attention->num_kv_heads;
  if (ranking == ChannelRanking::obs) return on_host(obs_of_groups(output_input, weights.output_DY, groups));
  const auto of_columns = [&](const at::Tensor& values_Y) { return values_Y.view({groups, -1}); };
  if (ranking == ChannelRanking::taylor) return on_host(of_columns(gradient_of(output_input)).sum(1).abs());
  const auto columns_GC = of_columns(score_of(ranking)(output_input, weights.output_DY));
  if (ranking == ChannelRanking::minitron) return on_host(columns_GC.square().sum(1).sqrt());
  if (ranking == ChannelRanking::fluctuation) return on_host(columns_GC.square().mean(1));
  return on_host(columns_GC.sum(1));
}

std::vector<std::vector<double>> standardised(const std::vector<std::vector<double>>& scores) {
  auto result = scores;
  for (auto& layer : result) {
    double count = 0, sum = 0, squares = 0;
    for (const auto score : layer)
      if (std::isfinite(score)) count += 1, sum += score;
    const double mean = sum / std::max(count, 1.0);
    for (const auto score : layer)
      if (std::isfinite(score)) squares += (score - mean) * (score - mean);
    const double deviation = std::sqrt(squares / std::max(count, 1.0));
    for (auto& score : layer)
      if (std::isfinite(score)) score = deviation > 0 ? (score - mean) / deviation : 0;
  }
  return result;
}

}  // namespace retort::calibrate
