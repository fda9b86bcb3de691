// Cross-entropy with the next token.  Source: Dickmann et al. 2025, eq. 3; algorithms: gradient softmax(z) -
// onehot(y).
#include <ATen/ATen.h>

#include "retort/loss/logit_loss.h"
#include "retort/loss/softened.h"

namespace retort::loss {
namespace {

class CrossEntropy final : public LogitLoss {
 public:
  explicit CrossEntropy(const LossOptions& options) : LogitLoss(traits_of(options.kind), options.weight) {}
  RowLosses of(const LogitRows& rows) const override {
    auto z_RV = shifted_logits(rows.student_RV, 1);
    const auto target_R1 = rows.targets_R.clamp_min(0).unsqueeze(1);
    const auto z_target_R1 = z_RV.gather(1, target_R1);
    const auto log_sum_R1 = to_probabilities_(z_RV);
    z_RV.scatter_add_(1, target_R1, at::full_like(z_target_R1, -1));
    return {.value_R1 = log_sum_R1 - z_target_R1, .gradient_RK = z_RV};
  }
  std::int64_t matrices() const override { return 1; }
  std::optional<kernels::LogitTerm> fused() const override {
    return kernels::LogitTerm{.kind = kernels::LogitTermKind::cross_entropy};
  }
};

}  // namespace

std::unique_ptr<LogitLoss> cross_entropy(const LossOptions& options) {
  return std::make_unique<CrossEntropy>(options);
}

}  // namespace retort::loss
