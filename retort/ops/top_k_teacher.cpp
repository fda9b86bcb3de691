#include "retort/ops/top_k_teacher.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "retort/ops/operands.h"

namespace retort::ops {
namespace {

struct LogSums {
  at::Tensor top_NK;             ///< logits of the tokens that are kept
  at::Tensor all_N1, others_N1;  ///< log-sums over the vocabulary, and over all other tokens
};

// The rest is summed for itself: 1 minus the sum of float32 probabilities would be rounding where it is
// small.
LogSums log_sums(const at::Tensor& logits_NV, const at::Tensor& ids_NK) {
  const auto others_NV = logits_NV.scatter(1, ids_NK, -std::numeric_limits<double>::infinity());
  const auto top_NK = logits_NV.gather(1, ids_NK), others_N1 = others_NV.logsumexp(-1, /*keepdim=*/true);
  return {top_NK, at::logaddexp(top_NK.logsumexp(-1, /*keepdim=*/true), others_N1), others_N1};
}

}  // namespace

TopKTeacher top_k_teacher(const at::Tensor& logits_NV, std::int64_t k) {
  const auto logits = logits_NV.to(statistics_type(logits_NV));
  const auto ids_NK =
      std::get<1>(logits.topk(std::min(k, logits.size(1)), -1, /*largest=*/true, /*sorted=*/false));
  const auto sums = log_sums(logits, ids_NK);
  return {ids_NK.to(at::kInt), sums.top_NK - sums.all_N1, (sums.others_N1 - sums.all_N1).squeeze(1)};
}

TopKScores score_top_k(const at::Tensor& student_NV, const TopKTeacher& teacher,
                       const at::Tensor& targets_N) {
  const auto logits = student_NV.to(statistics_type(student_NV));
  const auto sums = log_sums(logits, teacher.ids_NK.to(at::kLong));
  const auto nll_N = (sums.all_N1 - logits.gather(1, targets_N.clamp_min(0).unsqueeze(1))).squeeze(1);
  const auto log_q_NK = sums.top_NK - sums.all_N1;
  const auto top_N = (teacher.log_p_NK.exp() * (teacher.log_p_NK - log_q_NK)).sum(-1);
  const auto log_rest_N = (sums.others_N1 - sums.all_N1).squeeze(1);
  const auto rest_N = teacher.log_rest_N.exp() * (teacher.log_rest_N - log_rest_N);
  const auto zero_N = at::zeros_like(top_N);
  const auto none_N = teacher.log_rest_N.isinf();
  const auto kl_N = top_N + at::where(none_N, zero_N, rest_N);
  const auto least_q_N = logits.amin(-1) - sums.all_N1.squeeze(1);
  const auto gap_N = teacher.log_rest_N.exp() * (teacher.log_p_NK.amin(-1) - least_q_N) - rest_N;
  const auto counted_N = targets_N.ge(0);
  return {at::where(counted_N, nll_N, zero_N), at::where(counted_N, kl_N, zero_N),
          at::where(counted_N.logical_and(none_N.logical_not()), gap_N, zero_N)};
}

}  // namespace retort::ops
