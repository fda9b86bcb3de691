#pragma once
// Scores of a chunk of logits row by row: each row is read from the cache, and nothing of the chunk's size is
// made.

#include <utility>

#include "retort/kernels/types.h"

namespace retort::kernels::cpu {

ChunkScores score_chunk(const at::Tensor& student_NV, const at::Tensor& teacher_NV,
                        const at::Tensor& targets_N, std::int64_t num_tokens);

/// Log-sums of exponentials over all tokens but ids_NK, and the smallest logits of all, both [N, 1].
std::pair<at::Tensor, at::Tensor> sums_without(const at::Tensor& logits_NV, const at::Tensor& ids_NK);

}  // namespace retort::kernels::cpu
