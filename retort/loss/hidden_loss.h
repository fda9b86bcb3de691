#pragma once
// A loss on hidden states compares the output of each student block with that of one teacher block; the
// engine brings the two together and owns everything else.
//
// Shape legend: N tokens of a micro-batch, D hidden of the student, F hidden of the teacher.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "retort/loss/loss.h"

namespace retort::loss {

/// What the losses need to know about the two models.
struct Blocks {
  std::int64_t student = 0, teacher = 0;
  /// The teacher block that each of the student's was; empty: not known.
  std::vector<std::int64_t> survivors = {};
  /// The teacher's hidden feature that each of the student's was; empty: as many, or not known.
  std::vector<std::int64_t> features = {};
  /// The first ids that are tokens, of both: rows of a head beyond them are padding and leave both
  /// distributions where these are compared.  0: all rows, of heads of one size.
  std::int64_t num_tokens = 0;
};

/// The outputs of a student block and of the teacher block that it is compared with.
struct HiddenStates {
  at::Tensor student_ND;
  at::Tensor teacher_NF;                    ///< undefined when the loss needs no teacher
  const std::vector<std::int64_t>& bounds;  ///< first token of each sequence; last N
  double step_tokens = 1;                   ///< tokens of the whole step, over all ranks
};

class HiddenLoss : public Loss {
 public:
  using Loss::Loss;
  Normaliser normaliser() const override { return Normaliser::tokens; }
  /// Teacher block of student block `block`, both from 0; asked only of a loss that needs a teacher.
  virtual std::int64_t teacher_block(std::int64_t block) const = 0;
  /// Returns one student block's part as a sum over tokens, without the weight, a float64 scalar on its
  /// device; writes weight / step_tokens * gradient to grad_ND.
  virtual at::Tensor add(const HiddenStates& states, at::Tensor grad_ND) const = 0;
};

/// Throws UsageError when the layer map does not fit the models.
std::unique_ptr<HiddenLoss> squarehead(const LossOptions& options, const Blocks& blocks);

}  // namespace retort::loss
