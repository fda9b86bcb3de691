#include "retort/loss/squarehead.h"

#include <ATen/ATen.h>

#include "retort/ops/logit_losses.h"

namespace retort::loss {

at::Tensor pool_features(const at::Tensor& x_NF, std::int64_t width) {
  if (x_NF.size(1) == width) return x_NF;
  return at::adaptive_avg_pool1d(x_NF.unsqueeze(0), {width}).squeeze(0).contiguous();
}

double SquareHead::add(const at::Tensor& student_ND, const at::Tensor& teacher_NF,
                       const std::vector<std::int64_t>& bounds, double step_tokens,
                       at::Tensor grad_ND) const {
  const auto teacher_ND = pool_features(teacher_NF, student_ND.size(1));
  const double layers = static_cast<double>(layer_map_.size());
  double value = 0;
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    const auto begin = bounds[i], length = bounds[i + 1] - begin;
    const auto s_LD = student_ND.narrow(0, begin, length), t_LD = teacher_ND.narrow(0, begin, length);
    const auto sums = ops::square_sums(s_LD, t_LD);
    const double count = static_cast<double>(s_LD.numel());
    const double share = static_cast<double>(length) / step_tokens / layers / (sums.teacher / count + eps_);
    value += share * sums.error / count;
    ops::scaled_difference(s_LD, t_LD, weight_ * 2 * share / count, grad_ND.narrow(0, begin, length));
  }
  return value;
}

}  // namespace retort::loss
