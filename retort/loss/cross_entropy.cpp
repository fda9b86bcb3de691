// Cross-entropy with the next token.  Source: Dickmann et al. 2025, eq. 3; algorithms: gradient softmax(z) -
// onehot(y).
#include "retort/loss/logit_loss.h"

namespace retort::loss {
namespace {

class CrossEntropy final : public LogitLoss {
 public:
  explicit CrossEntropy(const LossOptions& options) : LogitLoss(traits_of(options.kind), options.weight) {}
  ops::LogitTerm term(double step_targets) const override {
    return {.kind = ops::LogitTermKind::cross_entropy, .gradient_scale = weight() / step_targets};
  }
};

}  // namespace

std::unique_ptr<LogitLoss> cross_entropy(const LossOptions& options) {
  return std::make_unique<CrossEntropy>(options);
}

}  // namespace retort::loss
