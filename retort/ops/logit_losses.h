#pragma once
// Losses on a chunk of logits, and on hidden states.
//
// Shape legend: N tokens of the chunk, V vocabulary of the student, K of both models.

#include <ATen/core/Tensor.h>

#include <vector>

#include "retort/kernels/logit_term.h"
#include "retort/kernels/types.h"
#include "retort/ops/path.h"

namespace retort::ops {

using kernels::LogitTerm;
using kernels::LogitTermKind;
using kernels::RelativeError;
using kernels::SquareSums;

/// Whether logits of this path, of so many bytes an element, have kernels for so many terms together.
bool has_logit_losses(Path path, std::int64_t item_bytes, std::int64_t terms);

/// For each term the sum over rows that count, in nats, float64, on the device of the logits, which is not
/// waited for; writes the sum of the terms' gradients to grad_NV, and zeros where nothing counts.  grad_NV
/// may be student_NV itself. student_NV: logits; teacher_NK: those of the first K tokens, which divergences
/// compare, undefined where no term is one.  targets_N: int64, -1 where a row does not count.  Rows of all
/// matrices are dense.  Throws InternalError where there are no kernels, of a kind that they do not know, and
/// where a teacher is missing.  Source: Hinton et al. 2015, section 2; Dickmann et al. 2025, eq. 2 and 3.
at::Tensor logit_losses(const at::Tensor& student_NV, const at::Tensor& teacher_NK,
                        const at::Tensor& targets_N, const std::vector<LogitTerm>& terms, at::Tensor grad_NV);

/// Sums over all elements of two hidden states: float64 scalars on their device, which is not waited for.
SquareSums square_sums(const at::Tensor& student_ND, const at::Tensor& teacher_ND);
/// factor * (student - teacher), written to out_ND; `factor` is a float64 scalar of their device.
void scaled_difference(const at::Tensor& student_ND, const at::Tensor& teacher_ND, const at::Tensor& factor,
                       at::Tensor out_ND);

/// The sum over segments of tokens / blocks * relative error: a float64 scalar on the device of the hidden
/// states, which is not waited for.  Writes its gradient, times weight / step_tokens, to grad_ND.  `bounds`
/// holds the first token of each segment in rising order and, last, N.
at::Tensor relative_errors(const at::Tensor& student_ND, const at::Tensor& teacher_ND,
                           const std::vector<std::int64_t>& bounds, const RelativeError& of,
                           at::Tensor grad_ND);

}  // namespace retort::ops
