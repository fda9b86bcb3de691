#pragma once
// RMSNorm, rotary embedding and the gates of an MLP, in one or two kernels each.  What they compute and take
// is said in ops/elementwise.h; float64 and shapes that no kernel has go to device/.

#include "retort/kernels/types.h"

namespace retort::kernels::cuda {

/// Blocks at most that add up the gradient of a norm's weight, each of some rows.
inline constexpr std::int64_t kNormBlocks = 1024;

/// Whether the backward of a norm of rows of so many elements, of `item_bytes` each, has a kernel.
bool has_norm_backward(std::int64_t dim, std::int64_t item_bytes);

RmsNorm rms_norm(const at::Tensor& x_ND, const at::Tensor& w_D, double eps);
at::Tensor rms_norm_backward(const at::Tensor& gy_ND, const at::Tensor& x_ND, const at::Tensor& w_D,
                             const at::Tensor& rstd_N, const at::Tensor& residual_ND, at::Tensor& gw_D);
void apply_rotary(at::Tensor x_NX, std::int64_t heads, std::int64_t head_dim, const Rotary& rotary,
                  double sign);
at::Tensor swiglu(const at::Tensor& gate_up_N2I);
at::Tensor geglu(const at::Tensor& gate_up_N2I);
GluGrad swiglu_backward_(const at::Tensor& gout_NI, at::Tensor gate_up_N2I);
GluGrad geglu_backward_(const at::Tensor& gout_NI, at::Tensor gate_up_N2I);
void accumulate(const at::Tensor& x, at::Tensor sum);

}  // namespace retort::kernels::cuda
