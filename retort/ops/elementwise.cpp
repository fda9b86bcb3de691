#include "retort/ops/elementwise.h"

#include <ATen/ATen.h>

#include "retort/kernels/tables.h"
#include "retort/ops/operands.h"
#include "retort/ops/operation_clock.h"

namespace retort::ops {
RmsNorm rms_norm(const at::Tensor& x_ND, const at::Tensor& w_D, double eps) {
  const InOperation timed(Operation::norm);
  ensure_alike("rms_norm takes dense rows and weights of one type", x_ND, w_D);
  return choose(x_ND, kernels::kElementwise).rms_norm(x_ND, w_D, eps);
}

at::Tensor rms_norm_backward(const at::Tensor& gy_ND, const at::Tensor& x_ND, const at::Tensor& w_D,
                             const at::Tensor& rstd_N, const at::Tensor& residual_ND, at::Tensor& gw_D) {
  const InOperation timed(Operation::norm);
  ensure_alike("rms_norm_backward takes dense rows of one type", x_ND, gy_ND, w_D,
               residual_ND.defined() ? residual_ND : x_ND);
  return choose(x_ND, kernels::kElementwise).rms_norm_backward(gy_ND, x_ND, w_D, rstd_N, residual_ND, gw_D);
}

Rotary rotary_tables(const at::Tensor& positions_N, const at::Tensor& frequencies_R2, double factor) {
  const auto angle = positions_N.to(at::kFloat).unsqueeze(1) * frequencies_R2.unsqueeze(0);
  if (factor == 1) return {angle.cos(), angle.sin()};
  return {angle.cos().mul_(factor), angle.sin().mul_(factor)};
}

at::Tensor rotary_frequencies(std::int64_t width, double theta) {
  const auto even =
      at::arange(0, width, 2, at::TensorOptions().dtype(at::kFloat)) / static_cast<double>(width);
  return at::pow(at::scalar_tensor(theta, at::kFloat), even).reciprocal();
}

void apply_rotary(at::Tensor x_NX, std::int64_t heads, std::int64_t head_dim, const Rotary& rotary,
                  double sign) {
  const InOperation timed(Operation::rotary);
  base::ensure(x_NX.stride(1) == 1, "apply_rotary takes rows of contiguous elements");
  choose(x_NX, kernels::kElementwise).apply_rotary(x_NX, heads, head_dim, rotary, sign);
}

at::Tensor swiglu(const at::Tensor& gate_up_N2I) {
  const InOperation timed(Operation::swiglu);
  ensure_alike("swiglu takes dense rows", gate_up_N2I);
  return choose(gate_up_N2I, kernels::kElementwise).swiglu(gate_up_N2I);
}

at::Tensor geglu(const at::Tensor& gate_up_N2I) {
  const InOperation timed(Operation::swiglu);
  ensure_alike("geglu takes dense rows", gate_up_N2I);
  return choose(gate_up_N2I, kernels::kElementwise).geglu(gate_up_N2I);
}

GluGrad geglu_backward_(const at::Tensor& gout_NI, at::Tensor gate_up_N2I) {
  const InOperation timed(Operation::swiglu);
  ensure_alike("geglu_backward_ takes dense rows of one type", gate_up_N2I, gout_NI);
  return choose(gate_up_N2I, kernels::kElementwise).geglu_backward_(gout_NI, gate_up_N2I);
}

GluGrad swiglu_backward_(const at::Tensor& gout_NI, at::Tensor gate_up_N2I) {
  const InOperation timed(Operation::swiglu);
  ensure_alike("swiglu_backward_ takes dense rows of one type", gate_up_N2I, gout_NI);
  return choose(gate_up_N2I, kernels::kElementwise).swiglu_backward_(gout_NI, gate_up_N2I);
}

void accumulate(const at::Tensor& x, at::Tensor sum) {
  choose(x, kernels::kElementwise).accumulate(x, sum);
}

void accumulate_rounded(const at::Tensor& x_CC, const at::Tensor& unit_C, at::Tensor sum_CC) {
  const bool dense = x_CC.is_contiguous() && sum_CC.is_contiguous();
  const auto& bodies = dense ? choose(sum_CC, kernels::kElementwise) : kernels::device::kElementwise;
  bodies.accumulate_rounded(x_CC, unit_C, sum_CC);
}

}  // namespace retort::ops
