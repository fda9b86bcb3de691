#pragma once
// What evaluation and searches read off a chunk of logits; no gradients.
//
// Shape legend: N tokens of the chunk, V vocabulary, K tokens that are kept.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "retort/kernels/types.h"

namespace retort::ops {

using kernels::ChunkScores;

/// What evaluation needs of each row of a chunk.
/// teacher_NV may be undefined.  Only the first `num_tokens` columns are tokens, 0: all; no other is the most
/// likely one.  What compares both models, kl_N and agreed_N, is as if there were no others.
ChunkScores score_chunk(const at::Tensor& student_NV, const at::Tensor& teacher_NV,
                        const at::Tensor& targets_N, std::int64_t num_tokens = 0);

/// Sums of a row that tell some tokens from all others, in float32, or in float64 of float64 logits.
struct SplitSums {
  at::Tensor kept_NK;    ///< logits of the tokens that are kept
  at::Tensor all_N1;     ///< log-sums of exponentials over the vocabulary
  at::Tensor others_N1;  ///< over all other tokens; minus infinity where there is none
  at::Tensor least_N1;   ///< smallest logit of the vocabulary
};
/// ids_NK: int32, each at most once in a row.  The others are summed for themselves: 1 minus the sum of
/// float32 probabilities would be rounding where it is small.
SplitSums split_sums(const at::Tensor& logits_NV, const at::Tensor& ids_NK);

}  // namespace retort::ops
