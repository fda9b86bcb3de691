#include "retort/kernels/tables.h"

#include <ATen/ATen.h>

#include <cmath>

#include "retort/kernels/device/pieces.h"

namespace retort::kernels::device {
namespace {

void adamw_(at::Tensor p, const at::Tensor& g, at::Tensor m, at::Tensor v, at::Tensor copy,
            const AdamWSettings& s) {
  const double correction1 = 1 - std::pow(s.beta1, static_cast<double>(s.step));
  const double correction2 = 1 - std::pow(s.beta2, static_cast<double>(s.step));
  for_each_piece(p.numel(), 1, [&](std::int64_t begin, std::int64_t count) {
    const auto part = [&](const at::Tensor& x) { return x.narrow(0, begin, count); };
    auto pp = part(p), mm = part(m), vv = part(v);
    const auto gg = part(g);
    mm.mul_(s.beta1).add_(gg, (1 - s.beta1) * s.gradient_scale);
    vv.mul_(s.beta2).addcmul_(gg, gg, (1 - s.beta2) * s.gradient_scale * s.gradient_scale);
    pp.mul_(1 - s.lr * s.weight_decay);
    pp.addcdiv_(mm, (vv / correction2).sqrt_().add_(s.eps), -s.lr / correction1);
    if (copy.defined()) part(copy).copy_(pp);
  });
}

at::Tensor sum_of_squares(const at::Tensor& x) {
  auto total = at::zeros({}, x.options().dtype(at::kDouble));
  for_each_piece(x.numel(), 1, [&](std::int64_t begin, std::int64_t count) {
    total.add_(at::linalg_vector_norm(x.narrow(0, begin, count), 2, {}, false, at::kDouble).square_());
  });
  return total;
}

}  // namespace

const OptimizerKernels kOptimizer{.adamw_ = adamw_, .sum_of_squares = sum_of_squares};

}  // namespace retort::kernels::device
