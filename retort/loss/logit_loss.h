#pragma once
// A loss on logits sees one chunk of rows at a time and adds its value and its gradient; the head loop owns
// everything else.
//
// Shape legend: N tokens of the chunk, V vocabulary of the student, K the first ids, tokens of both models.

#include <ATen/core/Tensor.h>

#include <memory>

#include "retort/loss/loss.h"

namespace retort::loss {

struct Chunk {
  at::Tensor student_NV;
  at::Tensor teacher_NK;    ///< undefined when no loss needs a teacher
  at::Tensor targets_N;     ///< int64; -1: the row does not count
  double step_targets = 1;  ///< counted rows of the whole step, over all ranks
};

class LogitLoss : public Loss {
 public:
  using Loss::Loss;
  Normaliser normaliser() const override { return Normaliser::targets; }
  /// Returns the sum over counted rows, in nats, without the weight; adds weight / step_targets * gradient to
  /// grad_NV.
  virtual double add(const Chunk& chunk, at::Tensor grad_NV) const = 0;
};

std::unique_ptr<LogitLoss> cross_entropy(const LossOptions& options);
std::unique_ptr<LogitLoss> kl_divergence(const LossOptions& options);

}  // namespace retort::loss
