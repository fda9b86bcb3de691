// Kullback-Leibler divergence between the softened distributions of teacher and student, times T squared.
// It runs over the tokens that both have, as if neither head had other rows.
// Source: Hinton et al. 2015, section 2; Dickmann et al. 2025, eq. 2 (which prints the reverse direction).
#include "retort/loss/logit_loss.h"
#include "retort/ops/logit_losses.h"

namespace retort::loss {
namespace {

class KlDivergence final : public LogitLoss {
 public:
  explicit KlDivergence(const LossOptions& options)
      : LogitLoss(traits_of(options.kind), options.weight),
        spec_{.temperature = options.temperature,
              .reverse = options.direction == KlDirection::reverse,
              .temperature_squared = options.temperature_squared} {}
  double add(const Chunk& chunk, at::Tensor grad_NV) const override {
    const auto tokens = chunk.teacher_NK.size(1);
    return ops::kl_divergence_(chunk.student_NV.narrow(1, 0, tokens), chunk.teacher_NK, chunk.targets_N,
                               spec_, weight() / chunk.step_targets, grad_NV.narrow(1, 0, tokens));
  }

 private:
  ops::KlSpec spec_;
};

}  // namespace

std::unique_ptr<LogitLoss> kl_divergence(const LossOptions& options) {
  return std::make_unique<KlDivergence>(options);
}

}  // namespace retort::loss
