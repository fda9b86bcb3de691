#pragma once
// The weighted sum of losses of a training stage.  The losses lie in two rows by what they look at;
// everything else is asked of the losses, so that a step knows none of them by name.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "retort/loss/hidden_loss.h"
#include "retort/loss/logit_loss.h"

namespace retort::loss {

/// Sums of unweighted losses by name; means once divided by their normalisers.
using LossSums = std::map<std::string, double>;

/// The losses of a stage, each of them once.
struct Losses {
  LogitLosses on_logits;
  std::vector<std::unique_ptr<HiddenLoss>> on_hidden;
  std::int64_t num_tokens = 0;  ///< as in Blocks

  /// Those on logits, then those on hidden states; valid as long as this object.
  std::vector<const Loss*> all() const;
  bool needs_teacher() const;
  bool needs_teacher_logits() const;
};

/// Those that count on text that the student itself wrote, which is nothing to learn by heart: losses that
/// compare distributions.  Source: Agarwal et al., arXiv 2306.13649, section 3.
std::vector<LossOptions> losses_on_written_text(const std::vector<LossOptions>& options);

/// Makes the losses that the options name.  Throws UsageError: no loss, the same loss twice, a bad layer map.
Losses make_losses(const std::vector<LossOptions>& options, const Blocks& blocks);

}  // namespace retort::loss
