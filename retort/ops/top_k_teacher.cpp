#include "retort/ops/top_k_teacher.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <tuple>

#include "retort/ops/dispatch.h"

namespace retort::ops {
namespace {

// Probabilities are sums of float32 exponentials: below this a tail is rounding.
constexpr double kLeastTail = 1e-8;

at::Tensor rest(const at::Tensor& log_p_NK) {
  return 1 - log_p_NK.exp().sum(-1, false, at::kDouble);
}

}  // namespace

TopKTeacher top_k_teacher(const at::Tensor& logits_NV, std::int64_t k) {
  const auto vocabulary = logits_NV.size(1);
  const auto logits = logits_NV.to(statistics_type(logits_NV));
  const auto [top_NK, ids_NK] = logits.topk(std::min(k, vocabulary), -1, /*largest=*/true, /*sorted=*/false);
  const auto log_p_NK = top_NK - logits.logsumexp(-1, /*keepdim=*/true);
  const auto tail_N = k < vocabulary ? rest(log_p_NK).clamp_min(0)
                                     : at::zeros({logits_NV.size(0)}, logits.options().dtype(at::kDouble));
  return {ids_NK.to(at::kInt), log_p_NK, tail_N};
}

TopKScores score_top_k(const at::Tensor& student_NV, const TopKTeacher& teacher,
                       const at::Tensor& targets_N) {
  const auto logits = student_NV.to(statistics_type(student_NV));
  const auto log_sum_N1 = logits.logsumexp(-1, /*keepdim=*/true);
  const auto counted_N = targets_N.ge(0);
  const auto nll_N = (log_sum_N1 - logits.gather(1, targets_N.clamp_min(0).unsqueeze(1))).squeeze(1);

  const auto log_q_NK = logits.gather(1, teacher.ids_NK.to(at::kLong)) - log_sum_N1;
  const auto known_N = (teacher.log_p_NK.exp() * (teacher.log_p_NK - log_q_NK)).sum(-1, false, at::kDouble);
  const auto log_ratio_N =
      teacher.tail_N.clamp_min(kLeastTail).log() - rest(log_q_NK).clamp_min(kLeastTail).log();
  const auto kl_N = known_N + teacher.tail_N * log_ratio_N;
  const auto kept = [&](const at::Tensor& rows_N) {
    return at::where(counted_N, rows_N, at::zeros_like(rows_N)).to(logits.scalar_type());
  };
  return {kept(nll_N), kept(kl_N)};
}

}  // namespace retort::ops
