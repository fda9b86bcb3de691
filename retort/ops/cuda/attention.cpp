#include "retort/ops/cuda/attention.h"

#include <ATen/ATen.h>

#include <optional>
#include <tuple>

#include "retort/ops/cuda/segments.h"
#include "retort/ops/device/attention.h"

namespace retort::ops::cuda {
namespace {

bool has_kernel(const at::Tensor& q_NHE, const ScoreRule& rule) {
  return q_NHE.is_cuda() && rule.softcap == 0 && q_NHE.scalar_type() != at::kDouble &&
         has_attention(q_NHE.size(2)) && q_NHE.size(0) > 0;
}

bool is_flash(const at::Tensor& q_NHE) {
  return q_NHE.scalar_type() == at::kBFloat16;
}

// How far back a query sees, and that it sees nothing after itself.
std::optional<std::int64_t> before(const ScoreRule& rule) {
  if (rule.window == 0) return {};
  return rule.window - 1;
}
std::optional<std::int64_t> after(const ScoreRule& rule) {
  if (rule.window == 0) return {};
  return 0;
}
std::optional<std::int64_t> window(const ScoreRule& rule) {
  if (rule.window == 0) return {};
  return rule.window;
}

// The kernels for float32 take one batch, and as many heads of keys as of queries.
at::Tensor of_each_query_head(const at::Tensor& x_NKE, std::int64_t heads) {
  return x_NKE.repeat_interleave(heads / x_NKE.size(1), 1).unsqueeze(0);
}
constexpr std::int64_t kCausalFromTopLeft = 1;

// The gradients of all heads that share keys.
void add_heads(const at::Tensor& g_1NHE, at::Tensor g_NKE) {
  const auto groups = g_1NHE.size(2) / g_NKE.size(1);
  g_NKE.copy_(g_1NHE.view({g_1NHE.size(1), g_NKE.size(1), groups, g_1NHE.size(3)}).sum(2));
}

}  // namespace

bool has_attention(std::int64_t head_dim) {
  return head_dim % 8 == 0 && head_dim <= 256;
}

Attention attention(const at::Tensor& q_NHE, const at::Tensor& k_NKE, const at::Tensor& v_NKE,
                    const std::vector<std::int64_t>& starts, const ScoreRule& rule) {
  if (!has_kernel(q_NHE, rule)) return device::attention(q_NHE, k_NKE, v_NKE, starts, rule);
  const auto [bounds_S, longest] = segments_of(starts, q_NHE.device());
  if (is_flash(q_NHE)) {
    auto result = at::_flash_attention_forward(q_NHE, k_NKE, v_NKE, bounds_S, bounds_S, longest, longest, 0.0,
                                               /*is_causal=*/true, /*return_debug_mask=*/false, rule.scale,
                                               before(rule), after(rule));
    return {std::get<0>(result), std::get<1>(result)};
  }
  const auto heads = q_NHE.size(1);
  auto result = at::_efficient_attention_forward(q_NHE.unsqueeze(0), of_each_query_head(k_NKE, heads),
                                                 of_each_query_head(v_NKE, heads), {}, bounds_S, bounds_S,
                                                 longest, longest, 0.0, kCausalFromTopLeft,
                                                 /*compute_log_sumexp=*/true, rule.scale, {}, window(rule));
  return {std::get<0>(result).squeeze(0), std::get<1>(result)};
}

void attention_backward(const at::Tensor& gout_NHE, const at::Tensor& q_NHE, const at::Tensor& k_NKE,
                        const at::Tensor& v_NKE, const Attention& forward,
                        const std::vector<std::int64_t>& starts, at::Tensor gq_NHE, at::Tensor gk_NKE,
                        at::Tensor gv_NKE, const ScoreRule& rule) {
  if (!has_kernel(q_NHE, rule) || !forward.lse_HN.defined())
    return device::attention_backward(gout_NHE, q_NHE, k_NKE, v_NKE, forward, starts, gq_NHE, gk_NKE, gv_NKE,
                                      rule);
  const auto [bounds_S, longest] = segments_of(starts, q_NHE.device());
  // Of the generator of dropout, which is not used.
  const auto seed = at::zeros({2}, q_NHE.options().dtype(at::kLong));
  if (is_flash(q_NHE)) {
    const auto [gq, gk, gv] = at::_flash_attention_backward(
        gout_NHE, q_NHE, k_NKE, v_NKE, forward.out_NHE, forward.lse_HN, bounds_S, bounds_S, longest, longest,
        0.0, /*is_causal=*/true, seed, seed, rule.scale, before(rule), after(rule));
    gq_NHE.copy_(gq);
    gk_NKE.copy_(gk);
    gv_NKE.copy_(gv);
    return;
  }
  const auto heads = q_NHE.size(1);
  const auto gradients = at::_efficient_attention_backward(
      gout_NHE.unsqueeze(0), q_NHE.unsqueeze(0), of_each_query_head(k_NKE, heads),
      of_each_query_head(v_NKE, heads), {}, forward.out_NHE.unsqueeze(0), bounds_S, bounds_S, longest,
      longest, forward.lse_HN, 0.0, seed, seed, kCausalFromTopLeft, /*bias_requires_grad=*/false, rule.scale,
      {}, window(rule));
  gq_NHE.copy_(std::get<0>(gradients).squeeze(0));
  add_heads(std::get<1>(gradients), gk_NKE);
  add_heads(std::get<2>(gradients), gv_NKE);
}

}  // namespace retort::ops::cuda
