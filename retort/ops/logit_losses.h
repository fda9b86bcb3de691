#pragma once
// Losses on a chunk of logits, each adding its gradient in place.
//
// Shape legend: N tokens of the chunk, V vocabulary.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace retort::ops {

/// Sum over counted rows of -log softmax(logits)[target]; adds gradient_scale * (softmax - onehot) to
/// grad_NV. targets_N: int64, -1 where a row does not count.  Result in nats, float64.
double cross_entropy_(const at::Tensor& logits_NV, const at::Tensor& targets_N, double gradient_scale,
                      at::Tensor grad_NV);

struct KlSpec {
  double temperature = 1;
  bool reverse = false;  ///< KL(student || teacher) instead of KL(teacher || student)
  bool temperature_squared = true;
};

/// Sum over counted rows of [T^2] KL at temperature T; adds gradient_scale times its gradient to grad_NV. All
/// three may be the first columns of wider tensors.
/// Source: Hinton et al. 2015, section 2; Dickmann et al. 2025, eq. 2.
double kl_divergence_(const at::Tensor& student_NV, const at::Tensor& teacher_NV, const at::Tensor& targets_N,
                      const KlSpec& spec, double gradient_scale, at::Tensor grad_NV);

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
