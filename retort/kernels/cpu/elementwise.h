#pragma once
// Norms, rotation and SwiGLU by the loops of vector_kernels.h, rows spread over threads.

#include "retort/kernels/types.h"

namespace retort::kernels::cpu {

RmsNorm rms_norm(const at::Tensor& x_ND, const at::Tensor& w_D, double eps);
at::Tensor rms_norm_backward(const at::Tensor& gy_ND, const at::Tensor& x_ND, const at::Tensor& w_D,
                             const at::Tensor& rstd_N, const at::Tensor& residual_ND, at::Tensor& gw_D);
void apply_rotary(at::Tensor x_NX, std::int64_t heads, std::int64_t head_dim, const Rotary& rotary,
                  double sign);
at::Tensor swiglu(const at::Tensor& gate_up_N2I);
GluGrad swiglu_backward_(const at::Tensor& gout_NI, at::Tensor gate_up_N2I);
at::Tensor geglu(const at::Tensor& gate_up_N2I);
GluGrad geglu_backward_(const at::Tensor& gout_NI, at::Tensor gate_up_N2I);
void accumulate(const at::Tensor& x, at::Tensor sum);
void accumulate_rounded(const at::Tensor& x_CC, const at::Tensor& unit_C, at::Tensor sum_CC);

}  // namespace retort::kernels::cpu
