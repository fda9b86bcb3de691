#pragma once
// Losses on a chunk of logits by the loops of vector_kernels.h; sums are made in fixed pieces of rows.

#include <vector>

#include "retort/kernels/logit_term.h"
#include "retort/kernels/types.h"

namespace retort::kernels::cpu {

at::Tensor logit_losses(const at::Tensor& student_NV, const at::Tensor& teacher_NK,
                        const at::Tensor& targets_N, const std::vector<LogitTerm>& terms, at::Tensor grad_NV);
SquareSums square_sums(const at::Tensor& student_ND, const at::Tensor& teacher_ND);
void scaled_difference(const at::Tensor& student_ND, const at::Tensor& teacher_ND, const at::Tensor& factor,
                       at::Tensor out_ND);

}  // namespace retort::kernels::cpu
