#pragma once
// A loss on logits says what it asks of the one loop over them; the head loop owns everything else.

#include <memory>

#include "retort/loss/loss.h"
#include "retort/ops/logit_term.h"

namespace retort::loss {

class LogitLoss : public Loss {
 public:
  using Loss::Loss;
  Normaliser normaliser() const override { return Normaliser::targets; }
  /// What it adds to a step with so many rows that count, over all ranks.
  virtual ops::LogitTerm term(double step_targets) const = 0;
};

/// -log p(target) of the student, in nats, over tokens that have a target.
std::unique_ptr<LogitLoss> cross_entropy(const LossOptions& options);
/// KL(teacher || student) of both at temperature T, times T^2 where options.temperature_squared, in nats.
/// Source: Hinton et al., arXiv 1503.02531, section 2.
std::unique_ptr<LogitLoss> kl_divergence(const LossOptions& options);

}  // namespace retort::loss
