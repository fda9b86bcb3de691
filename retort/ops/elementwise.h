#pragma once
// RMSNorm, rotary embedding, SwiGLU and GeGLU: forward, and a backward that needs no autograd graph.
//
// Shape legend: N tokens, D hidden, I width of an MLP, H heads, E head_dim.  float32, bfloat16 or float64
// tensors; the arithmetic is float32 (float64 for float64).  What runs on a CPU, and what on another device,
// is said in path.h.

#include <ATen/core/Tensor.h>

#include "retort/kernels/types.h"

namespace retort::ops {

using kernels::GluGrad;
using kernels::kRoundingUnits;
using kernels::RmsNorm;
using kernels::Rotary;

/// y = w * x / sqrt(mean(x^2) + eps).  The normalised value is rounded to the tensor's type before it meets
/// w, as transformers' LlamaRMSNorm does; the classes of Gemma and OLMo round once, after w.
RmsNorm rms_norm(const at::Tensor& x_ND, const at::Tensor& w_D, double eps);

/// Returns residual_ND + dL/dx, or dL/dx where residual_ND is undefined, and adds dL/dw to gw_D (float32, or
/// float64).  The sum over tokens is made in fixed pieces of rows, so it does not depend on the number of
/// threads.
at::Tensor rms_norm_backward(const at::Tensor& gy_ND, const at::Tensor& x_ND, const at::Tensor& w_D,
                             const at::Tensor& rstd_N, const at::Tensor& residual_ND, at::Tensor& gw_D);

/// cos and sin of position x frequency, times `factor`.
Rotary rotary_tables(const at::Tensor& positions_N, const at::Tensor& frequencies_R2, double factor = 1);
/// theta^(-2i / width) for the pairs of `width` channels, float32.
at::Tensor rotary_frequencies(std::int64_t width, double theta);

/// Rotates the first `heads` heads of each row in place ("rotate half" convention of Hugging Face).
/// x has rows of any stride whose elements are contiguous; sign -1 gives the gradient.
void apply_rotary(at::Tensor x_NX, std::int64_t heads, std::int64_t head_dim, const Rotary& rotary,
                  double sign);

/// silu(gate) * up, for rows [gate | up].
at::Tensor swiglu(const at::Tensor& gate_up_N2I);

/// gelu(gate) * up, with tanh in place of the error function.
at::Tensor geglu(const at::Tensor& gate_up_N2I);

/// Gradients; they overwrite gate_up_N2I with its own gradient (nothing needs it afterwards).
GluGrad swiglu_backward_(const at::Tensor& gout_NI, at::Tensor gate_up_N2I);
GluGrad geglu_backward_(const at::Tensor& gout_NI, at::Tensor gate_up_N2I);

/// sum += x, of the same shape and added in the type of `sum`.  One pass: at::add_ of bfloat16 to float32
/// makes a float32 copy of x first.
void accumulate(const at::Tensor& x, at::Tensor sum);

/// sum += x, each x_ij rounded to a multiple of unit_i unit_j, which are powers of two.  As long as sums stay
/// below 2^52 of these they are exact, and so the same in any order.  The sum and the units are float64.
void accumulate_rounded(const at::Tensor& x_CC, const at::Tensor& unit_C, at::Tensor sum_CC);

}  // namespace retort::ops
