#include "retort/ops/attention.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "retort/kernels/cpu/attention.h"
#include "retort/kernels/device/attention.h"
#include "retort/kernels/tables.h"
#include "retort/ops/operands.h"
#include "retort/ops/operation_clock.h"
#include "retort/ops/path.h"

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

at::Tensor attention_of_end(const at::Tensor& q_NHE, const at::Tensor& k_TKE, const at::Tensor& v_TKE,
                            const ScoreRule& given) {
  const InOperation timed(Operation::attention);
  const auto rule = given.of_heads(q_NHE.size(2));
  if (path_of(q_NHE.device()) == Path::cpu) return kernels::cpu::attention_of_end(q_NHE, k_TKE, v_TKE, rule);
  const auto rows = q_NHE.size(0), before = k_TKE.size(0) - rows;
  const auto heads_first = [](const at::Tensor& x) { return x.transpose(0, 1); };
  std::vector<at::Tensor> pieces;
  for (std::int64_t row = 0; row < rows; row += kEndRows) {
    const auto count = std::min(kEndRows, rows - row), seen = before + row + count;
    const auto unseen = rule.window > 0 ? std::max<std::int64_t>(0, seen - count + 1 - rule.window) : 0;
    const auto keys = [&](const at::Tensor& x) { return heads_first(x.narrow(0, unseen, seen - unseen)); };
    pieces.push_back(heads_first(kernels::device::composed_attention(
        heads_first(q_NHE.narrow(0, row, count)), keys(k_TKE), keys(v_TKE), seen - unseen - count, rule)));
  }
  return pieces.size() == 1 ? pieces.front() : at::cat(pieces);
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
