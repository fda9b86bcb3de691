#pragma once
// Causal attention inside the segments of a packed row of tokens.
//
// Shape legend: N tokens, H query heads, K key/value heads (H a multiple of K), E head_dim.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "retort/kernels/types.h"

namespace retort::ops {

using kernels::Attention;
using kernels::ScoreRule;

/// Views of queries, keys and values into rows of all three after each other, [N, (H + 2K) E].
struct Heads {
  at::Tensor q_NHE, k_NKE, v_NKE;
};
Heads split_heads(const at::Tensor& qkv_NX, std::int64_t kv_heads, std::int64_t head_dim);

/// softmax(scale q k^T) v with the causal mask, separately in each segment.  With a window, time grows
/// with length x window.
/// `starts` holds the first token of each segment in rising order and, last, N.  Inputs may be views into a
/// fused [N, (H + 2K) E] buffer: only the last dimension has to be contiguous.
Attention attention(const at::Tensor& q_NHE, const at::Tensor& k_NKE, const at::Tensor& v_NKE,
                    const std::vector<std::int64_t>& starts, const ScoreRule& rule = {});

/// Rows whose scores exist at a time on accelerators.
inline constexpr std::int64_t kEndRows = 256;

/// Attention of the last N of T tokens to all up to each, [N, H, E]; keys and values are [T, K, E].  On a CPU
/// a row has the bits that attention() of all T tokens gives it.
at::Tensor attention_of_end(const at::Tensor& q_NHE, const at::Tensor& k_TKE, const at::Tensor& v_TKE,
                            const ScoreRule& rule = {});

/// Writes the gradients into gq_NHE, gk_NKE, gv_NKE, which may be views into one buffer.
/// Scores are computed again in float32, the other products in the inputs' type.
void attention_backward(const at::Tensor& gout_NHE, const at::Tensor& q_NHE, const at::Tensor& k_NKE,
                        const at::Tensor& v_NKE, const Attention& forward,
                        const std::vector<std::int64_t>& starts, at::Tensor gq_NHE, at::Tensor gk_NKE,
                        at::Tensor gv_NKE, const ScoreRule& rule = {});

}  // namespace retort::ops
