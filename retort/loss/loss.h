#pragma once
// What every loss is to the training step, whatever it looks at: a name, a weight, what it needs, and what
// its sums are divided by.

#include <string>

#include "retort/loss/options.h"

namespace retort::loss {

/// What the sum of a loss over a step is divided by to be its mean.
enum class Normaliser {
  targets,  ///< rows of logits that have a target
  tokens,   ///< all tokens
};

class Loss {
 public:
  Loss(LossTraits traits, double weight) : traits_(traits), weight_(weight) {}
  virtual ~Loss() = default;

  /// The word of recipes and metrics.
  std::string name() const { return std::string(traits_.name); }
  bool needs_teacher() const { return traits_.needs_teacher; }
  /// Factor in the sum of the losses.
  double weight() const { return weight_; }
  virtual Normaliser normaliser() const = 0;

 private:
  LossTraits traits_;
  double weight_;
};

}  // namespace retort::loss
