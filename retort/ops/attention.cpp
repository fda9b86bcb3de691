#include "retort/ops/attention.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "retort/kernels/cpu/attention.h"
#include "retort/kernels/device/attention.h"
#include "retort/kernels/tables.h"
#include "retort/ops/operands.h"
#include "retort/ops/operation_clock.h"

namespace retort::ops {
Attention attention(const at::Tensor& q_NHE, const at::Tensor& k_NKE, const at::Tensor& v_NKE,
                    const std::vector<std::int64_t>& starts, const ScoreRule& rule) {
  const InOperation timed(Operation::attention);
  return choose(q_NHE, kernels::kAttention)
      .attention(q_NHE, k_NKE, v_NKE, starts, rule.of_heads(q_NHE.size(2)));
}

void attention_backward(const at::Tensor& gout_NHE, const at::Tensor& q_NHE, const at::Tensor& k_NKE,
                        const at::Tensor& v_NKE, const Attention& forward,
                        const std::vector<std::int64_t>& starts, at::Tensor gq_NHE, at::Tensor gk_NKE,
                        at::Tensor gv_NKE, const ScoreRule& rule) {
  const InOperation timed(Operation::attention);
  choose(q_NHE, kernels::kAttention)
      .attention_backward(gout_NHE, q_NHE, k_NKE, v_NKE, forward, starts, gq_NHE, gk_NKE, gv_NKE,
                          rule.of_heads(q_NHE.size(2)));
}

namespace {

// Queries, keys and values as views into their buffer.
struct Parts {
  at::Tensor q_NHE, k_NKE, v_NKE;
};

Parts parts_of(const at::Tensor& qkv_NX, const KeyValueCache& cache) {
  const auto kv_heads = cache.k_MKE.size(1), head_dim = cache.k_MKE.size(2);
  const auto all_NAE = qkv_NX.view({qkv_NX.size(0), -1, head_dim});
  const auto heads = all_NAE.size(1) - 2 * kv_heads;
  return {all_NAE.narrow(1, 0, heads), all_NAE.narrow(1, heads, kv_heads),
          all_NAE.narrow(1, heads + kv_heads, kv_heads)};
}

// Tokens of the cache; the last ones are those of the queries.
at::Tensor attention_to_all(const at::Tensor& q_NHE, const at::Tensor& k_MKE, const at::Tensor& v_MKE,
                            const ScoreRule& rule) {
  const auto heads_first = [](const at::Tensor& x) { return x.transpose(0, 1); };
  return heads_first(kernels::device::composed_attention(
      heads_first(q_NHE), heads_first(k_MKE), heads_first(v_MKE), k_MKE.size(0) - q_NHE.size(0), rule));
}

// Forgets what the window of the next token does not reach, where room for `count` more is wanted.
void make_room(KeyValueCache& cache, std::int64_t count, std::int64_t window) {
  if (window == 0 || cache.tokens + count <= cache.k_MKE.size(0)) return;
  const auto stay = std::min(cache.tokens, window - 1), first = cache.tokens - stay;
  for (const auto& x_MKE : {cache.k_MKE, cache.v_MKE}) {
    const auto end_SKE = x_MKE.narrow(0, first, stay);
    x_MKE.narrow(0, 0, stay).copy_(first < stay ? end_SKE.clone() : end_SKE);  // not onto itself
  }
  cache.tokens = stay;
}

// Of the beginning of a text that is longer than the room, of which the end is kept.
at::Tensor attention_beyond(const Parts& parts, KeyValueCache& cache, const ScoreRule& rule) {
  const auto count = parts.k_NKE.size(0);
  cache.tokens = rule.window - 1;
  const auto keep = [&](const at::Tensor& from_NKE, const at::Tensor& to_MKE) {
    to_MKE.narrow(0, 0, cache.tokens).copy_(from_NKE.narrow(0, count - cache.tokens, cache.tokens));
  };
  keep(parts.k_NKE, cache.k_MKE);
  keep(parts.v_NKE, cache.v_MKE);
  return attention(parts.q_NHE, parts.k_NKE, parts.v_NKE, {0, count}, rule).out_NHE.flatten(1);
}

}  // namespace

std::int64_t cache_room(std::int64_t text_tokens, std::int64_t window) {
  return window > 0 ? std::min(text_tokens, 2 * window) : text_tokens;
}

at::Tensor attention_cached(const at::Tensor& qkv_NX, KeyValueCache& cache, const ScoreRule& given) {
  const InOperation timed(Operation::attention);
  const auto count = qkv_NX.size(0), room = cache.k_MKE.size(0);
  const auto rule = given.of_heads(cache.k_MKE.size(2));
  make_room(cache, count, rule.window);
  const auto before = cache.tokens;
  const bool fits = before + count <= room, begins = before == 0 && rule.window > 0;
  base::ensure(qkv_NX.is_contiguous() && (fits || begins),
               "attention_cached takes dense rows, and a cache with room for them");
  if (count == 1 && path_of(qkv_NX.device()) == Path::cpu)
    return kernels::cpu::attention_cached(qkv_NX, cache, rule);
  const auto parts = parts_of(qkv_NX, cache);
  if (!fits) return attention_beyond(parts, cache, rule);
  cache.k_MKE.narrow(0, before, count).copy_(parts.k_NKE);
  cache.v_MKE.narrow(0, before, count).copy_(parts.v_NKE);
  cache.tokens += count;
  if (before == 0)
    return attention(parts.q_NHE, parts.k_NKE, parts.v_NKE, {0, count}, rule).out_NHE.flatten(1);
  // What is behind the window of the first of them no one sees.
  const auto first = rule.window > 0 ? std::max<std::int64_t>(0, before + 1 - rule.window) : 0;
  const auto seen = [&](const at::Tensor& x_MKE) { return x_MKE.narrow(0, first, cache.tokens - first); };
  const auto out_NHE = attention_to_all(parts.q_NHE, seen(cache.k_MKE), seen(cache.v_MKE), rule);
  return out_NHE.flatten(1);
}

}  // namespace retort::ops
