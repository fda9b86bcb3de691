#include "retort/ops/device/attention.h"

#include <ATen/ATen.h>
#include <ATen/SDPBackend.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <limits>

namespace retort::ops::device {
namespace {

// [N, H, E] rows begin..begin+length as the [1, H, L, E] that the kernels take; no copy.
at::Tensor heads_first(const at::Tensor& x_NHE, std::int64_t begin, std::int64_t length) {
  return x_NHE.narrow(0, begin, length).transpose(0, 1).unsqueeze(0);
}

at::Tensor tokens_first(const at::Tensor& x_1HLE) {
  return x_1HLE.squeeze(0).transpose(0, 1);
}

// Queries of a piece where no fused kernel knows the rule.
constexpr std::int64_t kPieceRows = 512;

// Scores with a soft cap, or keys behind a window: the queries of a piece meet only the keys that one of them
// sees, so nothing of length x length exists.
at::Tensor attention_in_pieces(const at::Tensor& q_1HLE, const at::Tensor& k_1KLE, const at::Tensor& v_1KLE,
                               const ScoreRule& rule) {
  const auto length = q_1HLE.size(2), groups = q_1HLE.size(1) / k_1KLE.size(1);
  const auto type = q_1HLE.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  std::vector<at::Tensor> pieces;
  for (std::int64_t row = 0; row < length; row += kPieceRows) {
    const auto rows = std::min(kPieceRows, length - row);
    const auto first = rule.window > 0 ? std::max<std::int64_t>(0, row + 1 - rule.window) : 0;
    const auto keys = row + rows - first;
    const auto of_keys = [&](const at::Tensor& x) {
      return x.narrow(2, first, keys).repeat_interleave(groups, 1);
    };
    auto scores =
        (at::matmul(q_1HLE.narrow(2, row, rows), of_keys(k_1KLE).transpose(2, 3)) * rule.scale).to(type);
    if (rule.softcap > 0) scores = at::tanh(scores / rule.softcap) * rule.softcap;
    const auto ones = at::ones({rows, keys}, scores.options().dtype(at::kBool));
    auto hidden = ones.triu(row - first + 1);
    if (rule.window > 0) hidden = hidden.logical_or(ones.tril(row - first - rule.window));
    const auto weights =
        at::softmax(scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()), -1);
    pieces.push_back(at::matmul(weights.to(v_1KLE.scalar_type()), of_keys(v_1KLE)));
  }
  return at::cat(pieces, 2);
}

// Where no fused kernel takes heads that share keys, the library would form a matrix of length x length:
// there each head is given keys of its own.
at::Tensor attention_of_segment(const at::Tensor& q_1HLE, const at::Tensor& k_1KLE, const at::Tensor& v_1KLE,
                                const ScoreRule& rule) {
  if (rule.softcap > 0 || (rule.window > 0 && rule.window < q_1HLE.size(2)))
    return attention_in_pieces(q_1HLE, k_1KLE, v_1KLE, rule);
  const auto groups = q_1HLE.size(1) / k_1KLE.size(1);
  const auto attend = [&](const at::Tensor& k, const at::Tensor& v, bool shared) {
    return at::scaled_dot_product_attention(q_1HLE, k, v, {}, 0.0, /*is_causal=*/true, rule.scale, shared);
  };
  if (groups == 1) return attend(k_1KLE, v_1KLE, false);
  const auto choice = at::_fused_sdp_choice(q_1HLE, k_1KLE, v_1KLE, {}, 0.0, true, rule.scale, true);
  if (choice != static_cast<std::int64_t>(at::SDPBackend::math)) return attend(k_1KLE, v_1KLE, true);
  return attend(k_1KLE.repeat_interleave(groups, 1), v_1KLE.repeat_interleave(groups, 1), false);
}

}  // namespace

Attention attention(const at::Tensor& q_NHE, const at::Tensor& k_NKE, const at::Tensor& v_NKE,
                    const std::vector<std::int64_t>& starts, const ScoreRule& rule) {
  Attention result{at::empty(q_NHE.sizes(), q_NHE.options()), {}};
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    const auto begin = starts[i], length = starts[i + 1] - begin;
    const auto segment = [&](const at::Tensor& x) { return heads_first(x, begin, length); };
    result.out_NHE.narrow(0, begin, length)
        .copy_(tokens_first(attention_of_segment(segment(q_NHE), segment(k_NKE), segment(v_NKE), rule)));
  }
  return result;
}

// Each kernel keeps something else for its backward.  So a segment is computed again under autograd, whose
// graph lives no longer than the segment: the same few lines on every device.
void attention_backward(const at::Tensor& gout_NHE, const at::Tensor& q_NHE, const at::Tensor& k_NKE,
                        const at::Tensor& v_NKE, const Attention&, const std::vector<std::int64_t>& starts,
                        at::Tensor gq_NHE, at::Tensor gk_NKE, at::Tensor gv_NKE, const ScoreRule& rule) {
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    const auto begin = starts[i], length = starts[i + 1] - begin;
    const auto leaf = [&](const at::Tensor& x) {
      return heads_first(x, begin, length).detach().requires_grad_(true);
    };
    const auto gradients = [&] {
      const at::AutoGradMode recorded(true);
      const auto q = leaf(q_NHE), k = leaf(k_NKE), v = leaf(v_NKE);
      return torch::autograd::grad({attention_of_segment(q, k, v, rule)}, {q, k, v},
                                   {heads_first(gout_NHE, begin, length)});
    }();
    gq_NHE.narrow(0, begin, length).copy_(tokens_first(gradients[0]));
    gk_NKE.narrow(0, begin, length).copy_(tokens_first(gradients[1]));
    gv_NKE.narrow(0, begin, length).copy_(tokens_first(gradients[2]));
  }
}

}  // namespace retort::ops::device
