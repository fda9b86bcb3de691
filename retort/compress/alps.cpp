#include "retort/compress/alps.h"

#include <ATen/ATen.h>

#include "retort/base/error.h"
#include "retort/compress/group_mask.h"
#include "retort/compress/polish.h"
#include "retort/ops/matrix_product.h"

namespace retort::compress {
namespace {

// The penalty begins where the mask is still free and grows until it no longer changes.  Growth of 1.1 took
// half as many iterations more, and erred at most 1 % less on held-out inputs.
constexpr double kFirstPenalty = 0.1, kPenaltyGrowth = 1.2;
constexpr std::int64_t kMostIterations = 60, kLeastIterations = 6;

// Q diag(values) Q^T of a damped Hessian with diagonal 1.
struct Spectrum {
  at::Tensor values_C, vectors_CC;
};

Spectrum spectrum_of(const at::Tensor& scaled_CC) {
  const auto [values_C, vectors_CC] = at::linalg_eigh(scaled_CC);
  return {values_C.to(at::kFloat), vectors_CC.to(at::kFloat).contiguous()};
}

// The mask at which alternating directions arrive.  x is free, z has the pattern, and y holds them together.
at::Tensor chosen_mask(const at::Tensor& weight_RC, const at::Tensor& scaled_CC,
                       const model::Pattern& pattern, const OfAllRows& of_all_rows) {
  const auto [values_C, vectors_CC] = spectrum_of(scaled_CC);
  const auto w_RC = weight_RC.to(at::kFloat);
  const auto image_RC = ops::matrix_product(w_RC, scaled_CC.to(at::kFloat));
  auto mask_RC = highest_of_groups(w_RC.abs(), pattern);
  auto z_RC = w_RC * mask_RC, y_RC = at::zeros_like(w_RC);
  double penalty = kFirstPenalty;
  for (std::int64_t iteration = 1; iteration <= kMostIterations; ++iteration, penalty *= kPenaltyGrowth) {
    const auto goal_RC = ops::matrix_product(image_RC - y_RC + penalty * z_RC, vectors_CC);
    const auto x_RC = ops::matrix_product(goal_RC / (values_C + penalty), vectors_CC.t());
    const auto free_RC = x_RC + y_RC / penalty;
    const auto next_RC = highest_of_groups(free_RC.abs(), pattern);
    z_RC = free_RC * next_RC;
    y_RC.add_(x_RC - z_RC, penalty);
    const bool same = of_all_rows(next_RC.equal(mask_RC));
    mask_RC = next_RC;
    if (same && iteration >= kLeastIterations) break;
  }
  return mask_RC;
}

}  // namespace

SparseResult alps(const at::Tensor& weight_RC, const at::Tensor& hessian_CC,
                  const calibrate::HessianFactor& factor, const model::Pattern& pattern,
                  const std::string& who, const OfAllRows& of_all_rows) {
  require_groups(weight_RC.size(1), pattern, who);
  const auto original_RC = weight_RC.to(hessian_CC.scalar_type());
  const auto alive_RC = original_RC.masked_fill(factor.dead_C, 0);
  const auto root_C = factor.damped_CC.diagonal().sqrt();
  const auto scaled_CC = factor.damped_CC / root_C.unsqueeze(1) / root_C;
  SparseResult result;
  result.mask_RC = chosen_mask(alive_RC * root_C, scaled_CC, pattern, of_all_rows);
  const auto type = weight_RC.scalar_type();
  const auto sparse_RC = least_squares_polish(alive_RC.to(type), (alive_RC * result.mask_RC).to(type),
                                              result.mask_RC, factor.damped_CC.to(type))
                             .weight_RC.to(original_RC.scalar_type());
  base::require<base::ValidationError>(sparse_RC.isfinite().all().item<bool>(), who,
                                       ": weights are not finite; use more calibration text.");
  result.weight_RC = sparse_RC.to(weight_RC.scalar_type());
  result.dampening_fraction = factor.dampening_fraction;
  result.error = output_error(original_RC, sparse_RC, hessian_CC);
  result.loss = result.error.change;
  return result;
}

}  // namespace retort::compress
