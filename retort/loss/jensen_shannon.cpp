// Generalised Jensen-Shannon divergence of the softened distributions p of the teacher and q of the student:
// beta KL(p || m) + (1 - beta) KL(q || m), m = beta p + (1 - beta) q.
// Source: Agarwal et al. 2024 (GKD, arXiv 2306.13649), eq. 1.
#include <ATen/ATen.h>

#include "retort/loss/logit_loss.h"

namespace retort::loss {
namespace {

at::Tensor log_probabilities(const at::Tensor& logits_RK, double temperature) {
  return at::log_softmax(temperature == 1 ? logits_RK : logits_RK / temperature, -1);
}

// Turns log(b / a) into log(a / m) of the mixture m = (1 - share) a + share b: zero where a = b.  Where b / a
// is beyond what an exponential holds, a counts for nothing.
at::Tensor to_log_ratio_(at::Tensor apart_RK, double share) {
  constexpr double kFar = 80;
  return apart_RK.clamp_max_(kFar).expm1_().mul_(share).log1p_().neg_();
}

class JensenShannon final : public LogitLoss {
 public:
  explicit JensenShannon(const LossOptions& options)
      : LogitLoss(traits_of(options.kind), options.weight),
        beta_(options.beta),
        temperature_(options.temperature),
        value_scale_(options.temperature_squared ? options.temperature * options.temperature : 1) {}

  // The gradient by the logits over the temperature is (1 - beta) q (log(q / m) - KL(q || m)).
  RowLosses of(const LogitRows& rows) const override {
    auto q_RK = log_probabilities(rows.student_RK(), temperature_);
    auto p_RK = log_probabilities(rows.teacher_RK, temperature_);
    auto of_q_RK = p_RK - q_RK;
    q_RK.exp_();
    p_RK.exp_();
    const auto kl_p_R1 = to_log_ratio_(-of_q_RK, 1 - beta_).mul_(p_RK).sum(-1, true);
    to_log_ratio_(of_q_RK, beta_);
    const auto kl_q_R1 = at::mul_out(p_RK, q_RK, of_q_RK).sum(-1, true);
    return {.value_R1 = beta_ * kl_p_R1 + (1 - beta_) * kl_q_R1,
            .gradient_RK = of_q_RK.sub_(kl_q_R1).mul_(q_RK),
            .value_scale = value_scale_,
            .gradient_scale = (1 - beta_) * value_scale_ / temperature_};
  }
  std::int64_t matrices() const override { return 4; }

 private:
  double beta_, temperature_, value_scale_;
};

}  // namespace

// At its ends the divergence is defined as what it goes to once divided by beta, or by 1 - beta.
std::unique_ptr<LogitLoss> jensen_shannon(const LossOptions& options) {
  if (options.beta > 0 && options.beta < 1) return std::make_unique<JensenShannon>(options);
  auto end = options;
  end.direction = options.beta <= 0 ? KlDirection::forward : KlDirection::reverse;
  return kl_divergence(end);
}

}  // namespace retort::loss
