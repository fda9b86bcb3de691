#include "retort/ops/logit_scores.h"

#include <ATen/ATen.h>

#include "retort/kernels/tables.h"
#include "retort/ops/operands.h"

namespace retort::ops {
ChunkScores score_chunk(const at::Tensor& student_NV, const at::Tensor& teacher_NV,
                        const at::Tensor& targets_N, std::int64_t num_tokens) {
  if (teacher_NV.defined())
    ensure_alike_rows("score_chunk takes logits of one type with dense rows", student_NV, teacher_NV);
  return choose(student_NV, kernels::kScores).score_chunk(student_NV, teacher_NV, targets_N, num_tokens);
}

SplitSums split_sums(const at::Tensor& logits_NV, const at::Tensor& ids_NK) {
  ensure_alike_rows("split_sums takes logits with dense rows", logits_NV);
  const auto [others_N1, least_N1] = choose(logits_NV, kernels::kScores).sums_without(logits_NV, ids_NK);
  const auto kept_NK = logits_NV.gather(1, ids_NK.to(at::kLong)).to(statistics_type(logits_NV));
  return {kept_NK, at::logaddexp(kept_NK.logsumexp(-1, /*keepdim=*/true), others_N1), others_N1, least_N1};
}

}  // namespace retort::ops
