#pragma once
// Scores of a chunk of logits composed of libtorch's operations.

#include <utility>

#include "retort/kernels/types.h"

namespace retort::kernels::device {

ChunkScores score_chunk(const at::Tensor& student_NV, const at::Tensor& teacher_NV,
                        const at::Tensor& targets_N, std::int64_t num_tokens);

/// Log-sums of exponentials over all tokens but ids_NK, and the smallest logits of all, both [N, 1].
std::pair<at::Tensor, at::Tensor> sums_without(const at::Tensor& logits_NV, const at::Tensor& ids_NK);

}  // namespace retort::kernels::device
