// Kullback-Leibler divergence between the softened distributions of teacher and student, times T squared.
// It runs over the tokens that both have, as if neither head had other rows.
// Source: Hinton et al. 2015, section 2; Dickmann et al. 2025, eq. 2 (which prints the reverse direction).
#include <ATen/ATen.h>

#include "retort/loss/logit_loss.h"
#include "retort/loss/softened.h"

namespace retort::loss {
namespace {

// Both take shifted logits, return the divergence of each row, [R, 1], and leave its gradient by the
// student's logits in their place.
at::Tensor forward_kl_(at::Tensor student_RK, at::Tensor teacher_RK) {
  auto p_RK = teacher_RK.clone();
  const auto log_teacher_R1 = to_probabilities_(p_RK);
  const auto mean_R1 = teacher_RK.sub_(student_RK).mul_(p_RK).sum(-1, true);
  const auto log_student_R1 = to_probabilities_(student_RK);
  student_RK.sub_(p_RK);
  return mean_R1 - log_teacher_R1 + log_student_R1;
}

at::Tensor reverse_kl_(at::Tensor student_RK, at::Tensor teacher_RK) {
  auto p_RK = student_RK.clone();
  const auto log_student_R1 = to_probabilities_(p_RK);
  student_RK.sub_(teacher_RK);
  const auto log_teacher_R1 = to_probabilities_(teacher_RK);
  student_RK.add_(log_teacher_R1 - log_student_R1);  // the log of the ratio
  at::mul_out(teacher_RK, p_RK, student_RK);
  const auto kl_R1 = teacher_RK.sum(-1, true);
  student_RK.sub_(kl_R1).mul_(p_RK);
  return kl_R1;
}

class KlDivergence final : public LogitLoss {
 public:
  explicit KlDivergence(const LossOptions& options)
      : LogitLoss(traits_of(options.kind), options.weight),
        reverse_(options.direction == KlDirection::reverse),
        temperature_(options.temperature),
        value_scale_(options.temperature_squared ? options.temperature * options.temperature : 1) {}

  RowLosses of(const LogitRows& rows) const override {
    auto z_RK = shifted_logits(rows.student_RK(), temperature_);
    const auto kl_ = reverse_ ? reverse_kl_ : forward_kl_;
    const auto kl_R1 = kl_(z_RK, shifted_logits(rows.teacher_RK, temperature_));
    return {kl_R1, z_RK, value_scale_, value_scale_ / temperature_};
  }
  std::int64_t matrices() const override { return 3; }
  std::optional<kernels::LogitTerm> fused() const override {
    return kernels::LogitTerm{
        .kind = reverse_ ? kernels::LogitTermKind::reverse_kl : kernels::LogitTermKind::forward_kl,
        .temperature = temperature_,
        .value_scale = value_scale_};
  }

 private:
  bool reverse_;
  double temperature_, value_scale_;
};

}  // namespace

std::unique_ptr<LogitLoss> kl_divergence(const LossOptions& options) {
  return std::make_unique<KlDivergence>(options);
}

}  // namespace retort::loss
