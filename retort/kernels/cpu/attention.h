#pragma once
// Attention on a CPU: in tiles that stay in the cache, and of one token to its cache of keys and values.

#include <vector>

#include "retort/kernels/cpu/vector_kernels.h"
#include "retort/kernels/types.h"

namespace retort::kernels::cpu {

/// For the kernels, which know nothing of torch.
inline Scores scores_of(const ScoreRule& rule) {
  return {rule.scale, rule.softcap, rule.window};
}

Attention attention(const at::Tensor& q_NHE, const at::Tensor& k_NKE, const at::Tensor& v_NKE,
                    const std::vector<std::int64_t>& starts, const ScoreRule& rule);
void attention_backward(const at::Tensor& gout_NHE, const at::Tensor& q_NHE, const at::Tensor& k_NKE,
                        const at::Tensor& v_NKE, const Attention& forward,
                        const std::vector<std::int64_t>& starts, at::Tensor gq_NHE, at::Tensor gk_NKE,
                        at::Tensor gv_NKE, const ScoreRule& rule);
/// Of one token.
at::Tensor attention_cached(const at::Tensor& qkv_1X, KeyValueCache& cache, const ScoreRule& rule);

}  // namespace retort::kernels::cpu
