#include "retort/kernels/tables.h"

#include <ATen/ATen.h>

#include <limits>
#include <tuple>
#include <utility>

namespace retort::kernels::device {
namespace {

ChunkScores score_chunk(const at::Tensor& student_NV, const at::Tensor& teacher_NV,
                        const at::Tensor& targets_N, std::int64_t num_tokens) {
  ChunkScores scores;
  const auto counted = targets_N.ge(0);
  const auto nll_of = [&](const at::Tensor& log_p) {
    const auto picked = log_p.gather(1, targets_N.clamp_min(0).unsqueeze(1)).squeeze(1);
    return at::where(counted, -picked, at::zeros_like(picked));
  };
  // Of the tokens alone, where there are other columns.  What was over all columns goes.
  const auto over_tokens = [&](at::Tensor log_p) {
    if (num_tokens == 0 || num_tokens == log_p.size(1)) return log_p;
    return at::log_softmax(log_p.narrow(1, 0, num_tokens), -1);
  };
  auto log_s = at::log_softmax(student_NV.to(statistics_type(student_NV)), -1);
  scores.nll_N = nll_of(log_s);
  const auto columns = num_tokens == 0 ? student_NV.size(1) : num_tokens;
  at::Tensor top1_log_p;
  std::tie(top1_log_p, scores.top1_N) = log_s.narrow(1, 0, columns).max(-1);
  scores.confidence_N = top1_log_p.exp();
  if (teacher_NV.defined()) {
    auto log_t = at::log_softmax(teacher_NV.to(statistics_type(teacher_NV)), -1);
    scores.teacher_nll_N = nll_of(log_t);
    scores.teacher_top1_N = log_t.narrow(1, 0, columns).argmax(-1);
    const auto common_s = over_tokens(std::move(log_s)), common_t = over_tokens(std::move(log_t));
    const auto kl = (common_t.exp() * (common_t - common_s)).sum(-1);
    scores.kl_N = at::where(counted, kl, at::zeros_like(kl));
    scores.agreed_N = common_s.argmax(-1).eq(common_t.argmax(-1));
  }
  return scores;
}

std::pair<at::Tensor, at::Tensor> sums_without(const at::Tensor& logits_NV, const at::Tensor& ids_NK) {
  const auto logits = logits_NV.to(statistics_type(logits_NV));
  const auto others_NV = logits.scatter(1, ids_NK.to(at::kLong), -std::numeric_limits<double>::infinity());
  return {others_NV.logsumexp(-1, /*keepdim=*/true), logits.amin(-1, /*keepdim=*/true)};
}

}  // namespace

const ScoreKernels kScores{.score_chunk = score_chunk, .sums_without = sums_without};

}  // namespace retort::kernels::device
