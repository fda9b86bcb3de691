#pragma once
// Losses on a chunk of logits composed of libtorch's operations: at most four temporaries of a piece of
// rows.

#include "retort/ops/logit_losses.h"

namespace retort::ops::device {

at::Tensor logit_losses(const at::Tensor& student_NV, const at::Tensor& teacher_NK,
                        const at::Tensor& targets_N, const std::vector<LogitTerm>& terms, at::Tensor grad_NV);
SquareSums square_sums(const at::Tensor& student_ND, const at::Tensor& teacher_ND);
void scaled_difference(const at::Tensor& student_ND, const at::Tensor& teacher_ND, const at::Tensor& factor,
                       at::Tensor out_ND);

}  // namespace retort::ops::device
