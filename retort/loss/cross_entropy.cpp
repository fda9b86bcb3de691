// Cross-entropy with the next token.  Source: Dickmann et al. 2025, eq. 3; algorithms: gradient softmax(z) -
// onehot(y).
#include "retort/loss/logit_loss.h"
#include "retort/ops/logit_losses.h"

namespace retort::loss {
namespace {

class CrossEntropy final : public LogitLoss {
 public:
  explicit CrossEntropy(const LossOptions& options) : LogitLoss(traits_of(options.kind), options.weight) {}
  double add(const Chunk& chunk, at::Tensor grad_NV) const override {
    return ops::cross_entropy_(chunk.student_NV, chunk.targets_N, weight() / chunk.step_targets,
                               std::move(grad_NV));
  }
};

}  // namespace

std::unique_ptr<LogitLoss> cross_entropy(const LossOptions& options) {
  return std::make_unique<CrossEntropy>(options);
}

}  // namespace retort::loss
