// Kullback-Leibler divergence between the softened distributions of teacher and student, times T squared.
// Source: Hinton et al. 2015, section 2; Dickmann et al. 2025, eq. 2 (which prints the reverse direction).
#include "retort/loss/logit_loss.h"
#include "retort/ops/logit_losses.h"

namespace retort::loss {
namespace {

class KlDivergence final : public LogitLoss {
 public:
  explicit KlDivergence(const LossOptions& options)
      : weight_(options.weight),
        spec_{.temperature = options.temperature,
              .reverse = options.direction == KlDirection::reverse,
              .temperature_squared = options.temperature_squared} {}
  std::string name() const override { return "kl_divergence"; }
  bool needs_teacher() const override { return true; }
  double add(const Chunk& chunk, at::Tensor grad_NV) const override {
    return ops::kl_divergence_(chunk.student_NV, chunk.teacher_NV, chunk.targets_N, spec_,
                               weight_ / chunk.step_targets, std::move(grad_NV));
  }

 private:
  double weight_;
  ops::KlSpec spec_;
};

}  // namespace

std::unique_ptr<LogitLoss> kl_divergence(const LossOptions& options) {
  return std::make_unique<KlDivergence>(options);
}

}  // namespace retort::loss
