#pragma once
// Attention on a CPU, in tiles that stay in the cache.

#include "retort/kernels/cpu/vector_kernels.h"
#include "retort/kernels/tables.h"

namespace retort::kernels::cpu {

/// For the kernels, which know nothing of torch.
inline Scores scores_of(const ScoreRule& rule) {
  return {rule.scale, rule.softcap, rule.window};
}

AttentionBackward attention_backward;
/// Of the last N of T tokens to all up to each, [N, H, E]: the rows that the attention of all T would have,
/// to the bit.
at::Tensor attention_of_end(const at::Tensor& q_NHE, const at::Tensor& k_TKE, const at::Tensor& v_TKE,
                            const ScoreRule& rule);

}  // namespace retort::kernels::cpu
