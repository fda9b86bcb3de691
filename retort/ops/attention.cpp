#include "retort/ops/attention.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "retort/ops/cpu/attention.h"
#include "retort/ops/device/attention.h"
#include "retort/ops/operands.h"
#include "retort/ops/operation_clock.h"

namespace retort::ops {

Attention attention(const at::Tensor& q_NHE, const at::Tensor& k_NKE, const at::Tensor& v_NKE,
                    const std::vector<std::int64_t>& starts) {
  const InOperation timed(Operation::attention);
  return choose(q_NHE, cpu::attention, device::attention)(q_NHE, k_NKE, v_NKE, starts);
}

void attention_backward(const at::Tensor& gout_NHE, const at::Tensor& q_NHE, const at::Tensor& k_NKE,
                        const at::Tensor& v_NKE, const Attention& forward,
                        const std::vector<std::int64_t>& starts, at::Tensor gq_NHE, at::Tensor gk_NKE,
                        at::Tensor gv_NKE) {
  const InOperation timed(Operation::attention);
  choose(q_NHE, cpu::attention_backward, device::attention_backward)(gout_NHE, q_NHE, k_NKE, v_NKE, forward,
                                                                     starts, gq_NHE, gk_NKE, gv_NKE);
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

// All tokens of the cache; the last ones are those of the queries.
at::Tensor attention_to_all(const at::Tensor& q_NHE, const at::Tensor& k_MKE, const at::Tensor& v_MKE) {
  const auto groups = q_NHE.size(1) / k_MKE.size(1);
  const auto queries = q_NHE.size(0), keys = k_MKE.size(0);
  const auto q = q_NHE.transpose(0, 1);
  const auto k = k_MKE.transpose(0, 1).repeat_interleave(groups, 0),
             v = v_MKE.transpose(0, 1).repeat_interleave(groups, 0);
  // Query i is token keys - queries + i and sees everything up to itself.
  const auto future = at::ones({queries, keys}, q.options().dtype(at::kBool)).triu(keys - queries + 1);
  const double scale = 1.0 / std::sqrt(static_cast<double>(q_NHE.size(2)));
  const auto scores = (at::matmul(q, k.transpose(1, 2)) * scale).to(statistics_type(q_NHE));
  const auto weights = at::softmax(scores.masked_fill(future, -std::numeric_limits<double>::infinity()), -1);
  return at::matmul(weights.to(v.scalar_type()), v).transpose(0, 1);
}

}  // namespace

at::Tensor attention_cached(const at::Tensor& qkv_NX, KeyValueCache& cache) {
  const InOperation timed(Operation::attention);
  const auto before = cache.tokens, count = qkv_NX.size(0);
  base::ensure(qkv_NX.is_contiguous() && before + count <= cache.k_MKE.size(0),
               "attention_cached takes dense rows, and a cache with room for them");
  if (count == 1 && path_of(qkv_NX.device()) == Path::cpu) return cpu::attention_cached(qkv_NX, cache);
  const auto parts = parts_of(qkv_NX, cache);
  cache.k_MKE.narrow(0, before, count).copy_(parts.k_NKE);
  cache.v_MKE.narrow(0, before, count).copy_(parts.v_NKE);
  cache.tokens += count;
  const auto out_NHE = before == 0 ? attention(parts.q_NHE, parts.k_NKE, parts.v_NKE, {0, count}).out_NHE
                                   : attention_to_all(parts.q_NHE, cache.k_MKE.narrow(0, 0, cache.tokens),
                                                      cache.v_MKE.narrow(0, 0, cache.tokens));
  return out_NHE.flatten(1);
}

}  // namespace retort::ops
