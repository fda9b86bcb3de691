#include "retort/kernels/cuda/attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "retort/kernels/cuda/segments.h"
#include "retort/kernels/tables.h"

namespace retort::kernels::cuda {
namespace {

bool is_flash(const at::Tensor& q_NHE) {
  return q_NHE.scalar_type() == at::kBFloat16;
}

// Rows that the kernel for float32 holds for all segments: as many for each as the longest has.
bool is_padded_little(const Segments& segments, std::int64_t tokens) {
  constexpr std::int64_t kTile = 64;
  return segments.count() * ((segments.longest + kTile - 1) / kTile * kTile) <= kMostPadding * tokens;
}

bool has_kernel(const at::Tensor& q_NHE, const Segments& segments, const ScoreRule& rule) {
  return q_NHE.is_cuda() && rule.softcap == 0 && has_attention(q_NHE.size(2)) &&
         (is_flash(q_NHE) || is_padded_little(segments, q_NHE.size(0)));
}

// What a kernel is told of a window; nothing without one.
std::optional<std::int64_t> of_window(const ScoreRule& rule, std::int64_t tokens) {
  return rule.window > 0 ? std::optional(tokens) : std::nullopt;
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

Attention attention(const at::Tensor& q_NHE, const at::Tensor& k_NKE, const at::Tensor& v_NKE,
                    const std::vector<std::int64_t>& starts, const ScoreRule& rule) {
  const auto segments = segments_of(starts, q_NHE.device());
  if (!has_kernel(q_NHE, segments, rule))
    return device::kAttention.attention(q_NHE, k_NKE, v_NKE, starts, rule);
  const auto& [bounds_S, longest] = segments;
  if (is_flash(q_NHE)) {
    auto result = at::_flash_attention_forward(q_NHE, k_NKE, v_NKE, bounds_S, bounds_S, longest, longest, 0.0,
                                               /*is_causal=*/true, /*return_debug_mask=*/false, rule.scale,
                                               of_window(rule, rule.window - 1), of_window(rule, 0));
    return {std::get<0>(result), std::get<1>(result)};
  }
  const auto heads = q_NHE.size(1);
  auto result = at::_efficient_attention_forward(
      q_NHE.unsqueeze(0), of_each_query_head(k_NKE, heads), of_each_query_head(v_NKE, heads), {}, bounds_S,
      bounds_S, longest, longest, 0.0, kCausalFromTopLeft,
      /*compute_log_sumexp=*/true, rule.scale, {}, of_window(rule, rule.window));
  return {std::get<0>(result).squeeze(0), std::get<1>(result)};
}

// Gradients of queries, keys and values.
struct Gradients {
  at::Tensor q_NHE, k_NKE, v_NKE;

  Gradients of(std::int64_t begin, std::int64_t count) const {
    return {q_NHE.narrow(0, begin, count), k_NKE.narrow(0, begin, count), v_NKE.narrow(0, begin, count)};
  }
};

// Segments `first` to before `last`, by the bounds of all.
struct Run {
  std::vector<std::int64_t> starts;  ///< from 0
  std::int64_t begin = 0, tokens = 0;
};
Run run_of(const std::vector<std::int64_t>& starts, std::size_t first, std::size_t last) {
  Run run{{}, starts[first], starts[last] - starts[first]};
  for (auto i = first; i <= last; ++i) run.starts.push_back(starts[i] - run.begin);
  return run;
}

// The generator of dropout, which is not used.
at::Tensor no_seed(const at::Tensor& x) {
  return at::zeros({2}, x.options().dtype(at::kLong));
}

// The kernel holds 128 rows behind each segment.
void flash_backward(const at::Tensor& gout_NHE, const at::Tensor& q_NHE, const at::Tensor& k_NKE,
                    const at::Tensor& v_NKE, const Attention& forward,
                    const std::vector<std::int64_t>& starts, const Gradients& to, const ScoreRule& rule) {
  constexpr std::int64_t kGap = 128;
  const auto tokens = q_NHE.size(0);
  const bool divisible = forward.lse_HN.dim() == 2 && forward.lse_HN.size(1) == tokens;
  const auto most =
      divisible ? static_cast<std::size_t>(std::max<std::int64_t>(1, tokens / kGap)) : starts.size();
  const auto seed = no_seed(q_NHE);
  for (std::size_t first = 0; first + 1 < starts.size(); first += most) {
    const auto run = run_of(starts, first, std::min(first + most, starts.size() - 1));
    const auto [bounds_S, longest] = segments_of(run.starts, q_NHE.device());
    const auto part = [&](const at::Tensor& x, std::int64_t dim = 0) {
      return run.tokens == tokens ? x : x.narrow(dim, run.begin, run.tokens);
    };
    const auto [gq, gk, gv] = at::_flash_attention_backward(
        part(gout_NHE), part(q_NHE), part(k_NKE), part(v_NKE), part(forward.out_NHE),
        part(forward.lse_HN, 1).contiguous(), bounds_S, bounds_S, longest, longest, 0.0, /*is_causal=*/true,
        seed, seed, rule.scale, of_window(rule, rule.window - 1), of_window(rule, 0));
    const auto own = to.of(run.begin, run.tokens);
    own.q_NHE.copy_(gq);
    own.k_NKE.copy_(gk);
    own.v_NKE.copy_(gv);
  }
}

void efficient_backward(const at::Tensor& gout_NHE, const at::Tensor& q_NHE, const at::Tensor& k_NKE,
                        const at::Tensor& v_NKE, const Attention& forward, const Segments& segments,
                        const Gradients& to, const ScoreRule& rule) {
  const auto heads = q_NHE.size(1);
  const auto seed = no_seed(q_NHE);
  const auto gradients = at::_efficient_attention_backward(
      gout_NHE.unsqueeze(0), q_NHE.unsqueeze(0), of_each_query_head(k_NKE, heads),
      of_each_query_head(v_NKE, heads), {}, forward.out_NHE.unsqueeze(0), segments.bounds_S,
      segments.bounds_S, segments.longest, segments.longest, forward.lse_HN, 0.0, seed, seed,
      kCausalFromTopLeft,
      /*bias_requires_grad=*/false, rule.scale, {}, of_window(rule, rule.window));
  to.q_NHE.copy_(std::get<0>(gradients).squeeze(0));
  add_heads(std::get<1>(gradients), to.k_NKE);
  add_heads(std::get<2>(gradients), to.v_NKE);
}

// The order in which gradients are added is the kernel's, and may differ from run to run.
void attention_backward(const at::Tensor& gout_NHE, const at::Tensor& q_NHE, const at::Tensor& k_NKE,
                        const at::Tensor& v_NKE, const Attention& forward,
                        const std::vector<std::int64_t>& starts, at::Tensor gq_NHE, at::Tensor gk_NKE,
                        at::Tensor gv_NKE, const ScoreRule& rule) {
  const auto segments = segments_of(starts, q_NHE.device());
  if (!has_kernel(q_NHE, segments, rule) || !forward.lse_HN.defined())
    return device::kAttention.attention_backward(gout_NHE, q_NHE, k_NKE, v_NKE, forward, starts, gq_NHE,
                                                 gk_NKE, gv_NKE, rule);
  const Gradients to{gq_NHE, gk_NKE, gv_NKE};
  if (is_flash(q_NHE))
    flash_backward(gout_NHE, q_NHE, k_NKE, v_NKE, forward, starts, to, rule);
  else
    efficient_backward(gout_NHE, q_NHE, k_NKE, v_NKE, forward, segments, to, rule);
}

}  // namespace

bool has_attention(std::int64_t head_dim) {
  return head_dim % 8 == 0 && head_dim <= 256;
}

const AttentionKernels kAttention{.attention = attention, .attention_backward = attention_backward};

}  // namespace retort::kernels::cuda
