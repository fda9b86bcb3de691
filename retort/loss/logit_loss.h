#pragma once
// A loss on logits gives its value and its gradient for a few rows of them; the head loop owns everything
// else.  Where kernels compute the same, the loss says so, and they take its place.
//
// Shape legend: R a few rows, V vocabulary of the student, K tokens that student and teacher share.

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

#include "retort/kernels/logit_term.h"
#include "retort/loss/loss.h"

namespace retort::loss {

/// Logits of both models, and what comes next.
struct LogitRows {
  at::Tensor student_RV;
  at::Tensor teacher_RK;  ///< of the first K tokens; undefined where no loss has a teacher
  at::Tensor targets_R;   ///< int64; -1 in a row that does not count
  /// The student's logits of the tokens that the teacher has too.
  at::Tensor student_RK() const;
};

/// What a loss computes for a few rows.  The factors are numbers, so that they cost no pass over the logits.
struct RowLosses {
  at::Tensor value_R1;        ///< the loss of each row without its weight, over value_scale
  at::Tensor gradient_RK;     ///< by the first columns of the student's logits; the others have none
  double value_scale = 1;     ///< factor of value_R1
  double gradient_scale = 1;  ///< factor of gradient_RK
};

class LogitLoss : public Loss {
 public:
  using Loss::Loss;
  Normaliser normaliser() const override { return Normaliser::targets; }
  /// Of logits in float32, or in float64; leaves them as they are.  What it gives for rows that do not count
  /// is ignored.  On a CPU many threads call it at once.
  virtual RowLosses of(const LogitRows& rows) const = 0;
  /// Matrices of the size of student_RV that `of` holds at its peak, its result included.
  virtual std::int64_t matrices() const = 0;
  /// The term of the kernels that computes the same, where there is one; its gradient_scale is not read.
  virtual std::optional<kernels::LogitTerm> fused() const { return std::nullopt; }
};

using LogitLosses = std::vector<std::unique_ptr<LogitLoss>>;

/// -log p(target) of the student, in nats, over tokens that have a target.
std::unique_ptr<LogitLoss> cross_entropy(const LossOptions& options);
/// KL(teacher || student) of both at temperature T, times T^2 where options.temperature_squared, in nats.
/// Source: Hinton et al., arXiv 1503.02531, section 2.
std::unique_ptr<LogitLoss> kl_divergence(const LossOptions& options);
/// options.beta KL(teacher || mixture) + (1 - beta) KL(student || mixture) at temperature T, times T^2 where
/// options.temperature_squared, in nats; the mixture has beta of the teacher.  0: KL(teacher || student), 1:
/// KL(student || teacher).  Source: Agarwal et al., arXiv 2306.13649, eq. 1.
std::unique_ptr<LogitLoss> jensen_shannon(const LossOptions& options);
/// Half of the summed differences of both models' probabilities at temperature T, from 0 to 1.  Source: Wen
/// et al., arXiv 2307.15190, section 3.
std::unique_ptr<LogitLoss> total_variation(const LossOptions& options);

}  // namespace retort::loss
