#pragma once
// Losses on a chunk of logits composed of libtorch's operations: at most three temporaries of a piece of
// rows.

#include "retort/ops/logit_losses.h"

namespace retort::ops::device {

double cross_entropy_(const at::Tensor& logits_NV, const at::Tensor& targets_N, double gradient_scale,
                      at::Tensor grad_NV);
double kl_divergence_(const at::Tensor& student_NV, const at::Tensor& teacher_NV, const at::Tensor& targets_N,
                      const KlSpec& spec, double gradient_scale, at::Tensor grad_NV);
SquareSums square_sums(const at::Tensor& student_ND, const at::Tensor& teacher_ND);
void scaled_difference(const at::Tensor& student_ND, const at::Tensor& teacher_ND, double factor,
                       at::Tensor out_ND);

}  // namespace retort::ops::device
