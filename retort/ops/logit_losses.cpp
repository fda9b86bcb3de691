#include "retort/ops/logit_losses.h"

#include <ATen/ATen.h>

#include "retort/ops/cpu/logit_losses.h"
#include "retort/ops/device/logit_losses.h"
#include "retort/ops/operands.h"
#include "retort/ops/operation_clock.h"

namespace retort::ops {

double cross_entropy_(const at::Tensor& logits_NV, const at::Tensor& targets_N, double gradient_scale,
                      at::Tensor grad_NV) {
  const InOperation timed(Operation::logit_losses);
  ensure_alike("cross_entropy_ takes dense logits and a gradient of one type", logits_NV, grad_NV);
  return choose(logits_NV, cpu::cross_entropy_, device::cross_entropy_)(logits_NV, targets_N, gradient_scale,
                                                                        grad_NV);
}

double kl_divergence_(const at::Tensor& student_NV, const at::Tensor& teacher_NV, const at::Tensor& targets_N,
                      const KlSpec& spec, double gradient_scale, at::Tensor grad_NV) {
  const InOperation timed(Operation::logit_losses);
  ensure_alike_rows("kl_divergence_ takes logits with dense rows and a gradient of one type", student_NV,
                    teacher_NV, grad_NV);
  return choose(student_NV, cpu::kl_divergence_, device::kl_divergence_)(student_NV, teacher_NV, targets_N,
                                                                         spec, gradient_scale, grad_NV);
}

SquareSums square_sums(const at::Tensor& student_ND, const at::Tensor& teacher_ND) {
  const InOperation timed(Operation::hidden_losses);
  ensure_alike("square_sums takes dense rows of one type", student_ND, teacher_ND);
  return choose(student_ND, cpu::square_sums, device::square_sums)(student_ND, teacher_ND);
}

void scaled_difference(const at::Tensor& student_ND, const at::Tensor& teacher_ND, double factor,
                       at::Tensor out_ND) {
  const InOperation timed(Operation::hidden_losses);
  ensure_alike("scaled_difference takes dense rows of one type", student_ND, teacher_ND, out_ND);
  choose(student_ND, cpu::scaled_difference, device::scaled_difference)(student_ND, teacher_ND, factor,
                                                                        out_ND);
}

}  // namespace retort::ops
