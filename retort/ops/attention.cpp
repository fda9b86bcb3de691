#include "retort/ops/attention.h"

#include <ATen/ATen.h>

#include "retort/kernels/tables.h"
#include "retort/ops/operands.h"
#include "retort/ops/operation_clock.h"

namespace retort::ops {

Heads split_heads(const at::Tensor& qkv_NX, std::int64_t kv_heads, std::int64_t head_dim) {
  const auto all = qkv_NX.size(1) / head_dim, heads = all - 2 * kv_heads;
  const auto all_NAE = qkv_NX.view({qkv_NX.size(0), all, head_dim});
  return {all_NAE.narrow(1, 0, heads), all_NAE.narrow(1, heads, kv_heads),
          all_NAE.narrow(1, heads + kv_heads, kv_heads)};
}

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

}  // namespace retort::ops
