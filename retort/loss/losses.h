#pragma once
// The weighted sum of losses of a training stage, made from its options.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "retort/loss/logit_loss.h"
#include "retort/loss/squarehead.h"

namespace retort::loss {

/// Sums of unweighted losses by name; means once divided by what they were summed over.
using LossSums = std::map<std::string, double>;

struct Losses {
  std::vector<std::unique_ptr<LogitLoss>> on_logits;
  std::optional<SquareHead> squarehead;
  std::map<std::string, double> weights;

  bool needs_teacher_logits() const;
  bool needs_teacher() const { return squarehead.has_value() || needs_teacher_logits(); }
  /// Weighted sum of mean values.
  double total(const LossSums& means) const;
};

/// What the losses need to know about the two models.
struct Blocks {
  std::int64_t student = 0, teacher = 0;
  std::vector<std::int64_t> survivors = {};
  /// The teacher's hidden feature that each of the student's was; empty: as many, or not known.
  std::vector<std::int64_t> features = {};
};

/// Throws UsageError: no loss, the same loss twice, a bad layer map.
Losses make_losses(const std::vector<LossOptions>& options, const Blocks& blocks);

}  // namespace retort::loss
