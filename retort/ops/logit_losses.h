#pragma once
// Losses on a chunk of logits, and on hidden states.
//
// Shape legend: N tokens of the chunk, V vocabulary of the student, K of both models.

#include <ATen/core/Tensor.h>

#include <vector>

#include "retort/ops/logit_term.h"

namespace retort::ops {

/// For each term the sum over rows that count, in nats, float64; writes the sum of the terms' gradients to
/// grad_NV, and zeros where nothing counts.  grad_NV may be student_NV itself.
/// student_NV: logits; teacher_NK: those of the first K tokens, which divergences compare, undefined where no
/// term is one.  targets_N: int64, -1 where a row does not count.  Rows of all matrices are dense.
/// Source: Hinton et al. 2015, section 2; Dickmann et al. 2025, eq. 2 and 3.
std::vector<double> logit_losses(const at::Tensor& student_NV, const at::Tensor& teacher_NK,
                                 const at::Tensor& targets_N, const std::vector<LogitTerm>& terms,
                                 at::Tensor grad_NV);

struct SquareSums {
  double error;    ///< sum of (student - teacher)^2
  double teacher;  ///< sum of teacher^2
};
/// Sums over all elements of two hidden states.
SquareSums square_sums(const at::Tensor& student_ND, const at::Tensor& teacher_ND);
/// factor * (student - teacher), written to out_ND.
void scaled_difference(const at::Tensor& student_ND, const at::Tensor& teacher_ND, double factor,
                       at::Tensor out_ND);

}  // namespace retort::ops
