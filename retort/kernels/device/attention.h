#pragma once
// Attention on an accelerator, by libtorch's fused kernels; no log-sum-exp is kept.

#include <vector>

#include "retort/kernels/types.h"

namespace retort::kernels::device {

/// Queries of a piece where no fused kernel knows the rule.
inline constexpr std::int64_t kAttentionPieceRows = 64;

/// softmax(scale q k^T) v by plain operations, whose scores are all there at once; dimensions before the
/// heads are a batch.  Query i has the place first_query + i among the keys, and sees them up to itself.
at::Tensor composed_attention(const at::Tensor& q_HRE, const at::Tensor& k_KME, const at::Tensor& v_KME,
                              std::int64_t first_query, const ScoreRule& rule);

Attention attention(const at::Tensor& q_NHE, const at::Tensor& k_NKE, const at::Tensor& v_NKE,
                    const std::vector<std::int64_t>& starts, const ScoreRule& rule);
void attention_backward(const at::Tensor& gout_NHE, const at::Tensor& q_NHE, const at::Tensor& k_NKE,
                        const at::Tensor& v_NKE, const Attention& forward,
                        const std::vector<std::int64_t>& starts, at::Tensor gq_NHE, at::Tensor gk_NKE,
                        at::Tensor gv_NKE, const ScoreRule& rule);

}  // namespace retort::kernels::device
