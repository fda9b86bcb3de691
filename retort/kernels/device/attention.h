#pragma once
// Attention on an accelerator, by libtorch's fused kernels; no log-sum-exp is kept.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "retort/kernels/types.h"

namespace retort::kernels::device {

/// Queries of a piece where no fused kernel knows the rule.
inline constexpr std::int64_t kAttentionPieceRows = 64;

/// softmax(scale q k^T) v by plain operations, whose scores are all there at once; dimensions before the
/// heads are a batch.  Query i has the place first_query + i among the keys, and sees them up to itself.
at::Tensor composed_attention(const at::Tensor& q_HRE, const at::Tensor& k_KME, const at::Tensor& v_KME,
                              std::int64_t first_query, const ScoreRule& rule);

}  // namespace retort::kernels::device
