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

// The loss of each row by one term, [R, 1], and its gradient by the student's logits.
struct RowLosses {
  at::Tensor value_R1, gradient_RV;
};

RowLosses cross_entropy(const at::Tensor& student_RV, const at::Tensor& targets_R) {
  auto z_RV = shifted_logits(student_RV, 1);
  const auto target_R1 = targets_R.clamp_min(0).unsqueeze(1);
  const auto z_target_R1 = z_RV.gather(1, target_R1);
  const auto log_sum_R1 = to_probabilities_(z_RV);
  z_RV.scatter_add_(1, target_R1, at::full_like(z_target_R1, -1));
  return {log_sum_R1 - z_target_R1, z_RV};
}

RowLosses kl_divergence(const at::Tensor& student_RK, const at::Tensor& teacher_RK, const LogitTerm& term) {
  auto z_RK = shifted_logits(student_RK, term.temperature);
  const auto kl_ = term.kind == LogitTermKind::reverse_kl ? reverse_kl_ : forward_kl_;
  return {kl_(z_RK, shifted_logits(teacher_RK, term.temperature)), z_RK};
}

// A piece of rows: values of its terms, and the sum of their gradients in the type of statistics.
class PieceOfRows {
 public:
  PieceOfRows(const at::Tensor& student_RV, const at::Tensor& teacher_RK, const at::Tensor& targets_R)
      : student_RV_(student_RV),
        teacher_RK_(teacher_RK),
        targets_R_(targets_R),
        skipped_R1_(targets_R.lt(0).unsqueeze(1)),
        sum_RV_(at::zeros_like(student_RV, student_RV.options().dtype(statistics_type(student_RV)))) {}

  /// The sum of the term's values, scaled as it says, which stays on the device.
  at::Tensor add(const LogitTerm& term) {
    const bool compares = term.kind != LogitTermKind::cross_entropy;
    const auto columns = compares ? teacher_RK_.size(1) : student_RV_.size(1);
    const auto of = compares ? kl_divergence(student_RV_.narrow(1, 0, columns), teacher_RK_, term)
                             : cross_entropy(student_RV_, targets_R_);
    const double scale =
        compares ? term.gradient_scale * term.value_scale / term.temperature : term.gradient_scale;
    sum_RV_.narrow(1, 0, columns).add_(of.gradient_RV.masked_fill_(skipped_R1_, 0), scale);
    return of.value_R1.masked_fill(skipped_R1_, 0).sum(at::kDouble).mul_(compares ? term.value_scale : 1);
  }
  const at::Tensor& gradient_RV() const { return sum_RV_; }

 private:
  at::Tensor student_RV_, teacher_RK_, targets_R_, skipped_R1_, sum_RV_;
};

at::Tensor sum_of_row_squares(const at::Tensor& x_RD) {
  return at::linalg_vector_norm(x_RD, 2, {1}).to(at::kDouble).square_().sum();
}

at::Tensor difference(const at::Tensor& student_RD, const at::Tensor& teacher_RD) {
  const auto type = statistics_type(student_RD);
  return student_RD.to(type) - teacher_RD.to(type);
}

}  // namespace

at::Tensor logit_losses(const at::Tensor& student_NV, const at::Tensor& teacher_NK,
                        const at::Tensor& targets_N, const std::vector<LogitTerm>& terms,
                        at::Tensor grad_NV) {
  const auto count = static_cast<std::int64_t>(terms.size());
  auto sums = at::zeros({count}, student_NV.options().dtype(at::kDouble));
  for_each_piece(student_NV.size(0), student_NV.size(1), [&](std::int64_t begin, std::int64_t rows) {
    const auto part = [&](const at::Tensor& x) { return x.defined() ? x.narrow(0, begin, rows) : x; };
    PieceOfRows piece(part(student_NV), part(teacher_NK), part(targets_N));
    for (std::int64_t i = 0; i < count; ++i) sums[i].add_(piece.add(terms[static_cast<std::size_t>(i)]));
    part(grad_NV).copy_(piece.gradient_RV());
  });
  return sums;
}

SquareSums square_sums(const at::Tensor& student_ND, const at::Tensor& teacher_ND) {
  const auto zero = [&] { return at::zeros({}, student_ND.options().dtype(at::kDouble)); };
  SquareSums sums{zero(), zero()};
  for_each_piece(student_ND.size(0), student_ND.size(1), [&](std::int64_t begin, std::int64_t count) {
    const auto teacher_RD = teacher_ND.narrow(0, begin, count);
    sums.error.add_(sum_of_row_squares(difference(student_ND.narrow(0, begin, count), teacher_RD)));
    sums.teacher.add_(sum_of_row_squares(teacher_RD.to(statistics_type(teacher_RD))));
  });
  return sums;
}

void scaled_difference(const at::Tensor& student_ND, const at::Tensor& teacher_ND, const at::Tensor& factor,
                       at::Tensor out_ND) {
  for_each_piece(student_ND.size(0), student_ND.size(1), [&](std::int64_t begin, std::int64_t count) {
    const auto part = [&](const at::Tensor& x) { return x.narrow(0, begin, count); };
    part(out_ND).copy_(difference(part(student_ND), part(teacher_ND)).mul_(factor));
  });
}

}  // namespace retort::ops::device
