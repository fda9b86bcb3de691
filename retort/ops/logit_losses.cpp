#include "retort/ops/logit_losses.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "retort/ops/cpu/logit_losses.h"
#include "retort/ops/device/logit_losses.h"
#include "retort/ops/operands.h"
#include "retort/ops/operation_clock.h"

namespace retort::ops {

at::Tensor logit_losses(const at::Tensor& student_NV, const at::Tensor& teacher_NK,
                        const at::Tensor& targets_N, const std::vector<LogitTerm>& terms,
                        at::Tensor grad_NV) {
  const InOperation timed(Operation::logit_losses);
  constexpr auto* kWhat = "logit_losses takes logits with dense rows and a gradient of one type";
  ensure_alike_rows(kWhat, student_NV, grad_NV);
  if (teacher_NK.defined()) ensure_alike_rows(kWhat, student_NV, teacher_NK);
  base::ensure(teacher_NK.defined() || std::ranges::all_of(terms,
                                                           [](const LogitTerm& term) {
                                                             return term.kind == LogitTermKind::cross_entropy;
                                                           }),
               "logit_losses compares with a teacher that is not there");
  return choose(student_NV, cpu::logit_losses, device::logit_losses)(student_NV, teacher_NK, targets_N, terms,
                                                                     grad_NV);
}

SquareSums square_sums(const at::Tensor& student_ND, const at::Tensor& teacher_ND) {
  const InOperation timed(Operation::hidden_losses);
  ensure_alike("square_sums takes dense rows of one type", student_ND, teacher_ND);
  return choose(student_ND, cpu::square_sums, device::square_sums)(student_ND, teacher_ND);
}

void scaled_difference(const at::Tensor& student_ND, const at::Tensor& teacher_ND, const at::Tensor& factor,
                       at::Tensor out_ND) {
  const InOperation timed(Operation::hidden_losses);
  ensure_alike("scaled_difference takes dense rows of one type", student_ND, teacher_ND, out_ND);
  choose(student_ND, cpu::scaled_difference, device::scaled_difference)(student_ND, teacher_ND, factor,
                                                                        out_ND);
}

}  // namespace retort::ops
