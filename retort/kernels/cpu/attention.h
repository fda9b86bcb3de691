#pragma once
// Attention on a CPU: in tiles that stay in the cache, and of one token to its cache of keys and values.

#include "retort/kernels/cpu/vector_kernels.h"
#include "retort/kernels/tables.h"

namespace retort::kernels::cpu {

/// For the kernels, which know nothing of torch.
inline Scores scores_of(const ScoreRule& rule) {
  return {rule.scale, rule.softcap, rule.window};
}

AttentionBackward attention_backward;
/// Of one token.
at::Tensor attention_cached(const at::Tensor& qkv_1X, KeyValueCache& cache, const ScoreRule& rule);

}  // namespace retort::kernels::cpu
