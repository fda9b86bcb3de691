// Total variation distance of the softened distributions p of the teacher and q of the student: half of the
// sum of |p - q|.  Source: Wen et al. 2023 (f-DISTILL, arXiv 2307.15190), section 3.
#include <ATen/ATen.h>

#include "retort/loss/logit_loss.h"

namespace retort::loss {
namespace {

class TotalVariation final : public LogitLoss {
 public:
  explicit TotalVariation(const LossOptions& options)
      : LogitLoss(traits_of(options.kind), options.weight), temperature_(options.temperature) {}

  // The gradient by the logits over the temperature is q (s - the mean of s under q) / 2, s the sign of q -
  // p; where they are equal s is 0.
  RowLosses of(const LogitRows& rows) const override {
    const auto q_RK = probabilities(rows.student_RK());
    auto difference_RK = probabilities(rows.teacher_RK).neg_().add_(q_RK);
    const auto distance_R1 = difference_RK.abs().sum(-1, true);
    const auto mean_sign_R1 = (difference_RK.sign_() * q_RK).sum(-1, true);
    return {.value_R1 = distance_R1,
            .gradient_RK = difference_RK.sub_(mean_sign_R1).mul_(q_RK),
            .value_scale = 0.5,
            .gradient_scale = 0.5 / temperature_};
  }
  std::int64_t matrices() const override { return 3; }

 private:
  at::Tensor probabilities(const at::Tensor& logits_RK) const {
    return at::softmax(temperature_ == 1 ? logits_RK : logits_RK / temperature_, -1);
  }
  double temperature_;
};

}  // namespace

std::unique_ptr<LogitLoss> total_variation(const LossOptions& options) {
  return std::make_unique<TotalVariation>(options);
}

}  // namespace retort::loss
