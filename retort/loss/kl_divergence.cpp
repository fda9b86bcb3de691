// Kullback-Leibler divergence between the softened distributions of teacher and student, times T squared.
// It runs over the tokens that both have, as if neither head had other rows.
// Source: Hinton et al. 2015, section 2; Dickmann et al. 2025, eq. 2 (which prints the reverse direction).
#include "retort/loss/logit_loss.h"

namespace retort::loss {
namespace {

class KlDivergence final : public LogitLoss {
 public:
  explicit KlDivergence(const LossOptions& options)
      : LogitLoss(traits_of(options.kind), options.weight),
        term_{.kind = options.direction == KlDirection::reverse ? ops::LogitTermKind::reverse_kl
                                                                : ops::LogitTermKind::forward_kl,
              .temperature = options.temperature,
              .value_scale = options.temperature_squared ? options.temperature * options.temperature : 1,
              .gradient_scale = 1} {}
  ops::LogitTerm term(double step_targets) const override {
    auto term = term_;
    term.gradient_scale = weight() / step_targets;
    return term;
  }

 private:
  ops::LogitTerm term_;
};

}  // namespace

std::unique_ptr<LogitLoss> kl_divergence(const LossOptions& options) {
  return std::make_unique<KlDivergence>(options);
}

}  // namespace retort::loss
