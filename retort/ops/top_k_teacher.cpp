#include "retort/ops/top_k_teacher.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <tuple>

#include "retort/ops/logit_scores.h"
#include "retort/ops/operands.h"

namespace retort::ops {

TopKTeacher top_k_teacher(const at::Tensor& logits_NV, std::int64_t k) {
  const auto logits = logits_NV.to(statistics_type(logits_NV));
  const auto ids_NK =
      std::get<1>(logits.topk(std::min(k, logits.size(1)), -1, /*largest=*/true, /*sorted=*/false))
          .to(at::kInt);
  const auto sums = split_sums(logits, ids_NK);
  return {ids_NK, sums.kept_NK - sums.all_N1, (sums.others_N1 - sums.all_N1).squeeze(1)};
}

TopKScores score_top_k(const at::Tensor& student_NV, const TopKTeacher& teacher,
                       const at::Tensor& targets_N) {
  const auto sums = split_sums(student_NV, teacher.ids_NK);
  const auto picked_N1 = student_NV.gather(1, targets_N.clamp_min(0).unsqueeze(1));
  const auto nll_N = (sums.all_N1 - picked_N1).squeeze(1);
  const auto log_q_NK = sums.kept_NK - sums.all_N1;
  const auto top_N = (teacher.log_p_NK.exp() * (teacher.log_p_NK - log_q_NK)).sum(-1);
  const auto log_rest_N = (sums.others_N1 - sums.all_N1).squeeze(1);
  const auto rest_N = teacher.log_rest_N.exp() * (teacher.log_rest_N - log_rest_N);
  const auto zero_N = at::zeros_like(top_N);
  const auto none_N = teacher.log_rest_N.isinf();
  const auto kl_N = top_N + at::where(none_N, zero_N, rest_N);
  const auto least_q_N = (sums.least_N1 - sums.all_N1).squeeze(1);
  const auto gap_N = teacher.log_rest_N.exp() * (teacher.log_p_NK.amin(-1) - least_q_N) - rest_N;
  const auto counted_N = targets_N.ge(0);
  return {at::where(counted_N, nll_N, zero_N), at::where(counted_N, kl_N, zero_N),
          at::where(counted_N.logical_and(none_N.logical_not()), gap_N, zero_N)};
}

}  // namespace retort::ops
