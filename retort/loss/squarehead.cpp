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

const at::Tensor& SquareHead::features_on(at::Device device) const {
  if (!features_there_D.defined() || features_there_D.device() != device)
    features_there_D = features_D.to(device);
  return features_there_D;
}

at::Tensor SquareHead::comparable(const at::Tensor& teacher_NF, std::int64_t width) const {
  return features_D.defined() ? teacher_NF.index_select(1, features_on(teacher_NF.device()))
                              : pool_features(teacher_NF, width);
}

at::Tensor SquareHead::add(const HiddenStates& states, at::Tensor grad_ND) const {
  const auto& [student_ND, teacher_NF, bounds, step_tokens] = states;
  const auto teacher_ND = comparable(teacher_NF, student_ND.size(1));
  return ops::relative_errors(student_ND, teacher_ND, bounds,
                              {.eps = eps_,
                               .blocks = static_cast<double>(layer_map_.size()),
                               .step_tokens = step_tokens,
                               .weight = weight()},
                              grad_ND);
}

std::unique_ptr<HiddenLoss> squarehead(const LossOptions& options, const Blocks& blocks) {
  return std::make_unique<SquareHead>(
      options, layer_map(options.layer_map, blocks.student, blocks.teacher, blocks.survivors),
      blocks.features);
}

}  // namespace retort::loss
