#include "retort/ops/logit_losses.h"

#include <ATen/ATen.h>

#include <tuple>

#include "retort/ops/cpu/logit_losses.h"
#include "retort/ops/device/logit_losses.h"
#include "retort/ops/operands.h"

namespace retort::ops {

double cross_entropy_(const at::Tensor& logits_NV, const at::Tensor& targets_N, double gradient_scale,
                      at::Tensor grad_NV) {
  ensure_alike("cross_entropy_ takes dense logits and a gradient of one type", logits_NV, grad_NV);
  return choose(logits_NV, cpu::cross_entropy_, device::cross_entropy_)(logits_NV, targets_N, gradient_scale,
                                                                        grad_NV);
}

double kl_divergence_(const at::Tensor& student_NV, const at::Tensor& teacher_NV, const at::Tensor& targets_N,
                      const KlSpec& spec, double gradient_scale, at::Tensor grad_NV) {
  ensure_alike_rows("kl_divergence_ takes logits with dense rows and a gradient of one type", student_NV,
                    teacher_NV, grad_NV);
  return choose(student_NV, cpu::kl_divergence_, device::kl_divergence_)(student_NV, teacher_NV, targets_N,
                                                                         spec, gradient_scale, grad_NV);
}

SquareSums square_sums(const at::Tensor& student_ND, const at::Tensor& teacher_ND) {
  ensure_alike("square_sums takes dense rows of one type", student_ND, teacher_ND);
  return choose(student_ND, cpu::square_sums, device::square_sums)(student_ND, teacher_ND);
}

void scaled_difference(const at::Tensor& student_ND, const at::Tensor& teacher_ND, double factor,
                       at::Tensor out_ND) {
  ensure_alike("scaled_difference takes dense rows of one type", student_ND, teacher_ND, out_ND);
  choose(student_ND, cpu::scaled_difference, device::scaled_difference)(student_ND, teacher_ND, factor,
                                                                        out_ND);
}

ChunkScores score_chunk(const at::Tensor& student_NV, const at::Tensor& teacher_NV,
                        const at::Tensor& targets_N, std::int64_t num_tokens) {
  ChunkScores scores;
  const auto counted = targets_N.ge(0);
  const auto nll_of = [&](const at::Tensor& log_p) {
    const auto picked = log_p.gather(1, targets_N.clamp_min(0).unsqueeze(1)).squeeze(1);
    return at::where(counted, -picked, at::zeros_like(picked));
  };
  // Of the tokens alone, where there are other columns.
  const auto over_tokens = [&](const at::Tensor& log_p) {
    if (num_tokens == 0 || num_tokens == log_p.size(1)) return log_p;
    return at::log_softmax(log_p.narrow(1, 0, num_tokens), -1);
  };
  const auto log_s = at::log_softmax(student_NV.to(statistics_type(student_NV)), -1);
  scores.nll_N = nll_of(log_s);
  at::Tensor top1_log_p;
  std::tie(top1_log_p, scores.top1_N) = log_s.max(-1);
  scores.confidence_N = top1_log_p.exp();
  if (teacher_NV.defined()) {
    const auto log_t = at::log_softmax(teacher_NV.to(statistics_type(teacher_NV)), -1);
    scores.teacher_nll_N = nll_of(log_t);
    scores.teacher_top1_N = log_t.argmax(-1);
    const auto common_s = over_tokens(log_s), common_t = over_tokens(log_t);
    const auto kl = (common_t.exp() * (common_t - common_s)).sum(-1);
    scores.kl_N = at::where(counted, kl, at::zeros_like(kl));
    scores.agreed_N = common_s.argmax(-1).eq(common_t.argmax(-1));
  }
  return scores;
}

}  // namespace retort::ops
