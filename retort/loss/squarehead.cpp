#include "retort/loss/squarehead.h"

#include <ATen/ATen.h>

#include "retort/loss/layer_map.h"
#include "retort/ops/logit_losses.h"

namespace retort::loss {

at::Tensor pool_features(const at::Tensor& x_NF, std::int64_t width) {
  if (x_NF.size(1) == width) return x_NF;
  return at::adaptive_avg_pool1d(x_NF.unsqueeze(0), {width}).squeeze(0).contiguous();
}

SquareHead::SquareHead(const LossOptions& options, std::vector<std::int64_t> layer_map,
                       const std::vector<std::int64_t>& features)
    : HiddenLoss(traits_of(options.kind), options.weight),
      eps_(options.eps),
      layer_map_(std::move(layer_map)) {
  if (!features.empty()) features_D = at::tensor(features, at::kLong);
}

at::Tensor SquareHead::comparable(const at::Tensor& teacher_NF, std::int64_t width) const {
  return features_D.defined() ? teacher_NF.index_select(1, features_D.to(teacher_NF.device()))
                              : pool_features(teacher_NF, width);
}

at::Tensor SquareHead::add(const HiddenStates& states, at::Tensor grad_ND) const {
  const auto& [student_ND, teacher_NF, bounds, step_tokens] = states;
  const auto teacher_ND = comparable(teacher_NF, student_ND.size(1));
  const double blocks = static_cast<double>(layer_map_.size());
  auto value = at::zeros({}, student_ND.options().dtype(at::kDouble));
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    const auto begin = bounds[i], length = bounds[i + 1] - begin;
    const auto s_LD = student_ND.narrow(0, begin, length), t_LD = teacher_ND.narrow(0, begin, length);
    const auto sums = ops::square_sums(s_LD, t_LD);
    const double count = static_cast<double>(s_LD.numel());
    // Divided in this order, the gradient has the same bits however the value is summed.
    const double tokens = static_cast<double>(length);
    const auto relative = sums.teacher / count + eps_;
    const auto over_relative = [&](double x) { return at::full_like(relative, x).div_(relative); };
    value.add_(over_relative(tokens / blocks).mul_(sums.error).div_(count));
    const auto factor = over_relative(tokens / step_tokens / blocks).mul_(weight() * 2).div_(count);
    ops::scaled_difference(s_LD, t_LD, factor, grad_ND.narrow(0, begin, length));
  }
  return value;
}

std::unique_ptr<HiddenLoss> squarehead(const LossOptions& options, const Blocks& blocks) {
  return std::make_unique<SquareHead>(
      options, layer_map(options.layer_map, blocks.student, blocks.teacher, blocks.survivors),
      blocks.features);
}

}  // namespace retort::loss
