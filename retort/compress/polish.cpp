#include "retort/compress/polish.h"

#include <ATen/ATen.h>

#include "retort/ops/matrix_product.h"

namespace retort::compress {
namespace {

at::Tensor row_products(const at::Tensor& a_RC, const at::Tensor& b_RC) {
  return (a_RC * b_RC).sum(1, /*keepdim=*/true);
}

// a / b, 0 where b is not above 0: the row is solved.
at::Tensor ratio(const at::Tensor& a_R1, const at::Tensor& b_R1) {
  return at::where(b_R1 > 0, a_R1 / b_R1, at::zeros_like(a_R1));
}

}  // namespace

Polished least_squares_polish(const at::Tensor& weight_RC, const at::Tensor& sparse_RC,
                              const at::Tensor& mask_RC, const at::Tensor& hessian_CC,
                              const PolishOptions& options) {
  const auto type = hessian_CC.scalar_type();
  const auto keep_RC = mask_RC.to(type);
  auto w_RC = sparse_RC.to(type) * keep_RC;
  const auto diagonal_C = hessian_CC.diagonal();
  const auto inverse_C = at::where(diagonal_C > 0, diagonal_C.reciprocal(), at::zeros_like(diagonal_C));

  auto residual_RC = ops::matrix_product(weight_RC.to(type) - w_RC, hessian_CC).mul_(keep_RC);
  auto direction_RC = residual_RC * inverse_C;
  auto length_R1 = row_products(residual_RC, direction_RC);
  // Each row stops by itself: what it becomes does not depend on the rows that are solved beside it.
  const auto goal_R1 = length_R1 * (options.tolerance * options.tolerance);
  Polished result;
  for (auto open_R1 = length_R1 > goal_R1;
       result.iterations < options.iterations && open_R1.any().item<bool>(); open_R1 = length_R1 > goal_R1) {
    const auto image_RC = ops::matrix_product(direction_RC, hessian_CC).mul_(keep_RC);
    const auto step_R1 = ratio(length_R1, row_products(direction_RC, image_RC)) * open_R1;
    w_RC.add_(direction_RC * step_R1);
    residual_RC.sub_(image_RC * step_R1);
    const auto scaled_RC = residual_RC * inverse_C;
    const auto next_R1 = row_products(residual_RC, scaled_RC);
    direction_RC = scaled_RC + direction_RC * ratio(next_R1, length_R1);
    length_R1 = next_R1;
    ++result.iterations;
  }
  result.weight_RC = w_RC.to(sparse_RC.scalar_type());
  return result;
}

}  // namespace retort::compress
