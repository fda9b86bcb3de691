#pragma once
// The operations of ops/ as their formulas read, for autograd in float64: the oracle of the tests, and of
// nothing else.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "retort/ops/attention.h"

namespace retort::ops::reference {

at::Tensor rms_norm(const at::Tensor& x_ND, const at::Tensor& w_D, double eps);
/// x_NHE with tables [N, R/2]: the first R channels of each head are turned.
at::Tensor rotary(const at::Tensor& x_NHE, const at::Tensor& cos_NE2, const at::Tensor& sin_NE2, double sign);
at::Tensor swiglu(const at::Tensor& gate_up_N2I);
at::Tensor geglu(const at::Tensor& gate_up_N2I);
/// Causal attention inside segments; starts holds the first token of each segment and, last, N.  GQA by
/// repetition.
at::Tensor attention(const at::Tensor& q_NHE, const at::Tensor& k_NKE, const at::Tensor& v_NKE,
                     const std::vector<std::int64_t>& starts, const ScoreRule& rule = {});
/// Per-token losses [N]; rows with target -1 give 0.
at::Tensor cross_entropy(const at::Tensor& logits_NV, const at::Tensor& targets_N);
at::Tensor kl_divergence(const at::Tensor& student_NV, const at::Tensor& teacher_NV,
                         const at::Tensor& targets_N, double temperature, bool reverse,
                         bool temperature_squared);
/// One AdamW step, decoupled weight decay.  Source: Loshchilov and Hutter 2019, algorithm 2.
void adamw(at::Tensor& p, const at::Tensor& g, at::Tensor& m, at::Tensor& v, double lr, double beta1,
           double beta2, double eps, double weight_decay, std::int64_t step);

}  // namespace retort::ops::reference
