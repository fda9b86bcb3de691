#pragma once
// A loss on logits sees one chunk of rows at a time and adds its value and its gradient; the head loop owns
// everything else.  A new loss is one file with one class, and a line in losses.cpp.
//
// Shape legend: N tokens of the chunk, V vocabulary of the student, K the first ids, tokens of both models.

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "retort/loss/options.h"

namespace retort::loss {

struct Chunk {
  at::Tensor student_NV;
  at::Tensor teacher_NK;    ///< undefined when no loss needs a teacher
  at::Tensor targets_N;     ///< int64; -1: the row does not count
  double step_targets = 1;  ///< counted rows of the whole step, over all ranks: the normaliser
};

class LogitLoss {
 public:
  virtual ~LogitLoss() = default;
  virtual std::string name() const = 0;
  virtual bool needs_teacher() const = 0;
  /// Returns the sum over counted rows, in nats, without the weight; adds weight / step_targets * gradient to
  /// grad_NV.
  virtual double add(const Chunk& chunk, at::Tensor grad_NV) const = 0;
};

std::unique_ptr<LogitLoss> cross_entropy(const LossOptions& options);
std::unique_ptr<LogitLoss> kl_divergence(const LossOptions& options);

}  // namespace retort::loss
