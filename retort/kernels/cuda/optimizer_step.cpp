#include "retort/kernels/tables.h"

#include <ATen/ATen.h>

#include <cmath>

#include "retort/kernels/cuda/arguments.h"
#include "retort/kernels/cuda/kernels.h"

namespace retort::kernels::cuda {
namespace {

void adamw_(at::Tensor p, const at::Tensor& g, at::Tensor m, at::Tensor v, at::Tensor copy,
            const AdamWSettings& s) {
  const double step = static_cast<double>(s.step);
  const double correction1 = 1 - std::pow(s.beta1, step), correction2 = 1 - std::pow(s.beta2, step);
  const auto narrowed = [](double x) { return static_cast<float>(x); };
  const retort_kernels::AdamWStep of_step{.gradient_scale = narrowed(s.gradient_scale),
                                          .beta1 = narrowed(s.beta1),
                                          .first_rest = narrowed(1 - s.beta1),
                                          .beta2 = narrowed(s.beta2),
                                          .second_rest = narrowed(1 - s.beta2),
                                          .kept_by_decay = narrowed(1 - s.lr * s.weight_decay),
                                          .inverse_correction2 = narrowed(1 / correction2),
                                          .eps = narrowed(s.eps),
                                          .step_size = narrowed(s.lr / correction1)};
  run("adamw<1>", at::kFloat, shared_grid(p.numel()), p, p.mutable_data_ptr(), g.const_data_ptr(),
      m.mutable_data_ptr(), v.mutable_data_ptr(), copy.defined() ? copy.mutable_data_ptr() : nullptr,
      p.numel(), of_step);
}

at::Tensor sum_of_squares(const at::Tensor& x) {
  auto grid = shared_grid(x.numel());
  grid.blocks = std::min<std::int64_t>(grid.blocks, 1024);
  const auto of_blocks = at::empty({grid.blocks}, x.options().dtype(at::kDouble));
  run("sum_of_squares<1>", at::kFloat, grid, x, of_blocks.mutable_data_ptr(), x.const_data_ptr(), x.numel());
  return of_blocks.sum();
}

}  // namespace

const OptimizerKernels kOptimizer{.adamw_ = adamw_, .sum_of_squares = sum_of_squares};

}  // namespace retort::kernels::cuda
