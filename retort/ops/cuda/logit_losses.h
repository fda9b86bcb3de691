#pragma once
// Losses on logits in one kernel, and on hidden states in two.  What they compute and take is said in
// ops/logit_losses.h; float64 goes to ops/device/.

#include "retort/ops/logit_losses.h"

namespace retort::ops::cuda {

at::Tensor logit_losses(const at::Tensor& student_NV, const at::Tensor& teacher_NK,
                        const at::Tensor& targets_N, const std::vector<LogitTerm>& terms, at::Tensor grad_NV);

/// Not for float64.
at::Tensor relative_errors(const at::Tensor& student_ND, const at::Tensor& teacher_ND,
                           const std::vector<std::int64_t>& bounds, const RelativeError& of,
                           at::Tensor grad_ND);

}  // namespace retort::ops::cuda
