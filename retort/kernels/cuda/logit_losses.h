#pragma once
// Losses on logits in one kernel, and on hidden states in two.  What they compute and take is said in
// ops/logit_losses.h.

#include <vector>

#include "retort/kernels/logit_term.h"
#include "retort/kernels/types.h"

namespace retort::kernels::cuda {

/// Not for float64, and for some terms at most.
bool has_logit_losses(std::int64_t item_bytes, std::int64_t terms);
at::Tensor logit_losses(const at::Tensor& student_NV, const at::Tensor& teacher_NK,
                        const at::Tensor& targets_N, const std::vector<LogitTerm>& terms, at::Tensor grad_NV);

/// Not for float64.
at::Tensor relative_errors(const at::Tensor& student_ND, const at::Tensor& teacher_ND,
                           const std::vector<std::int64_t>& bounds, const RelativeError& of,
                           at::Tensor grad_ND);

}  // namespace retort::kernels::cuda
