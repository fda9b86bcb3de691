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
  std::int64_t num_tokens = 0;  ///< as in Blocks

  bool needs_teacher_logits() const;
  bool needs_teacher() const { return squarehead.has_value() || needs_teacher_logits(); }
  /// Weighted sum of mean values.
  double total(const LossSums& means) const;
};

/// What the losses need to know about the two models.
struct Blocks {
  std::int64_t student = 0, teacher = 0;
  std::vector<std::int64_t> survivors = {};
  std::int64_t survivors_of = 0;  ///< blocks of the model whose blocks survived; 0: not known
  /// The teacher's hidden feature that each of the student's was; empty: as many, or not known.
  std::vector<std::int64_t> features = {};
  /// The first ids that are tokens, of both: rows of a head beyond them are padding and leave both
  /// distributions where these are compared.  0: all rows, of heads of one size.
  std::int64_t num_tokens = 0;
};

/// Throws UsageError: no loss, the same loss twice, a bad layer map.
Losses make_losses(const std::vector<LossOptions>& options, const Blocks& blocks);

}  // namespace retort::loss
