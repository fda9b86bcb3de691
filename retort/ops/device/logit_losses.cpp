#include "retort/ops/device/logit_losses.h"

#include <ATen/ATen.h>

#include "retort/ops/device/pieces.h"
#include "retort/ops/operands.h"

namespace retort::ops::device {
namespace {

// Shape legend beside that of logit_losses.h: R rows of a piece.

// Logits over the temperature less the largest of their row: a copy, in the type of statistics.
at::Tensor shifted_logits(const at::Tensor& logits_RV, double temperature) {
  auto z_RV = logits_RV.to(statistics_type(logits_RV), /*non_blocking=*/false, /*copy=*/true);
  if (temperature != 1) z_RV.div_(temperature);
  return z_RV.sub_(z_RV.amax(-1, true));
}

// Turns shifted logits into probabilities; returns the log of the sum of their exponentials, [R, 1].
at::Tensor to_probabilities_(at::Tensor z_RV) {
  const auto sum_R1 = z_RV.exp_().sum(-1, true);
  z_RV.div_(sum_R1);
  return sum_R1.log();
}

// Both take shifted logits, return the divergence of each row, [R, 1], and leave its gradient by the
// student's logits in their place.
at::Tensor forward_kl_(at::Tensor student_RV, at::Tensor teacher_RV) {
  auto p_RV = teacher_RV.clone();
  const auto log_teacher_R1 = to_probabilities_(p_RV);
  const auto mean_R1 = teacher_RV.sub_(student_RV).mul_(p_RV).sum(-1, true);
  const auto log_student_R1 = to_probabilities_(student_RV);
  student_RV.sub_(p_RV);
  return mean_R1 - log_teacher_R1 + log_student_R1;
}

at::Tensor reverse_kl_(at::Tensor student_RV, at::Tensor teacher_RV) {
  auto p_RV = student_RV.clone();
  const auto log_student_R1 = to_probabilities_(p_RV);
  student_RV.sub_(teacher_RV);
  const auto log_teacher_R1 = to_probabilities_(teacher_RV);
  student_RV.add_(log_teacher_R1 - log_student_R1);  // the log of the ratio
  at::mul_out(teacher_RV, p_RV, student_RV);
  const auto kl_R1 = teacher_RV.sum(-1, true);
  student_RV.sub_(kl_R1).mul_(p_RV);
  return kl_R1;
}

// What a piece adds: values to a sum that stays on the device, and gradients where they are counted.
class Sum {
 public:
  Sum(const at::Tensor& targets_N, double gradient_scale)
      : targets_N_(targets_N),
        gradient_scale_(gradient_scale),
        total_(at::zeros({}, targets_N.options().dtype(at::kDouble))) {}

  void add(std::int64_t begin, const at::Tensor& value_R1, at::Tensor gradient_RV, at::Tensor grad_RV) {
    const auto skipped_R1 = targets_N_.narrow(0, begin, value_R1.size(0)).lt(0).unsqueeze(1);
    total_.add_(value_R1.masked_fill(skipped_R1, 0).sum(at::kDouble));
    gradient_RV.masked_fill_(skipped_R1, 0);
    if (gradient_RV.scalar_type() == grad_RV.scalar_type())
      grad_RV.add_(gradient_RV, gradient_scale_);
    else  // rounded once
      grad_RV.copy_(gradient_RV.mul_(gradient_scale_).add_(grad_RV));
  }
  double value() const { return total_.item<double>(); }

 private:
  const at::Tensor& targets_N_;
  double gradient_scale_;
  at::Tensor total_;
};

double sum_of_row_squares(const at::Tensor& x_RD) {
  return at::linalg_vector_norm(x_RD, 2, {1}).to(at::kDouble).square_().sum().item<double>();
}

at::Tensor difference(const at::Tensor& student_RD, const at::Tensor& teacher_RD) {
  const auto type = statistics_type(student_RD);
  return student_RD.to(type) - teacher_RD.to(type);
}

}  // namespace

double cross_entropy_(const at::Tensor& logits_NV, const at::Tensor& targets_N, double gradient_scale,
                      at::Tensor grad_NV) {
  Sum sum(targets_N, gradient_scale);
  for_each_piece(logits_NV.size(0), logits_NV.size(1), [&](std::int64_t begin, std::int64_t count) {
    auto z_RV = shifted_logits(logits_NV.narrow(0, begin, count), 1);
    const auto target_R1 = targets_N.narrow(0, begin, count).clamp_min(0).unsqueeze(1);
    const auto z_target_R1 = z_RV.gather(1, target_R1);
    const auto log_sum_R1 = to_probabilities_(z_RV);
    z_RV.scatter_add_(1, target_R1, at::full_like(z_target_R1, -1));
    sum.add(begin, log_sum_R1 - z_target_R1, z_RV, grad_NV.narrow(0, begin, count));
  });
  return sum.value();
}

double kl_divergence_(const at::Tensor& student_NV, const at::Tensor& teacher_NV, const at::Tensor& targets_N,
                      const KlSpec& spec, double gradient_scale, at::Tensor grad_NV) {
  const double t = spec.temperature, power = spec.temperature_squared ? t * t : 1.0;
  const auto kl_ = spec.reverse ? reverse_kl_ : forward_kl_;
  Sum sum(targets_N, gradient_scale * power / t);
  for_each_piece(student_NV.size(0), student_NV.size(1), [&](std::int64_t begin, std::int64_t count) {
    auto student_RV = shifted_logits(student_NV.narrow(0, begin, count), t);
    const auto kl_R1 = kl_(student_RV, shifted_logits(teacher_NV.narrow(0, begin, count), t));
    sum.add(begin, kl_R1, student_RV, grad_NV.narrow(0, begin, count));
  });
  return sum.value() * power;
}

SquareSums square_sums(const at::Tensor& student_ND, const at::Tensor& teacher_ND) {
  SquareSums sums{};
  for_each_piece(student_ND.size(0), student_ND.size(1), [&](std::int64_t begin, std::int64_t count) {
    const auto teacher_RD = teacher_ND.narrow(0, begin, count);
    sums.error += sum_of_row_squares(difference(student_ND.narrow(0, begin, count), teacher_RD));
    sums.teacher += sum_of_row_squares(teacher_RD.to(statistics_type(teacher_RD)));
  });
  return sums;
}

void scaled_difference(const at::Tensor& student_ND, const at::Tensor& teacher_ND, double factor,
                       at::Tensor out_ND) {
  for_each_piece(student_ND.size(0), student_ND.size(1), [&](std::int64_t begin, std::int64_t count) {
    const auto part = [&](const at::Tensor& x) { return x.narrow(0, begin, count); };
    part(out_ND).copy_(difference(part(student_ND), part(teacher_ND)).mul_(factor));
  });
}

}  // namespace retort::ops::device
