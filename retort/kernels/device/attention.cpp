#include "retort/kernels/device/attention.h"

#include <ATen/ATen.h>
#include <ATen/SDPBackend.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "retort/kernels/tables.h"

namespace retort::kernels::device {
namespace {

// [N, H, E] rows begin..begin+length as the [1, H, L, E] that the kernels take; no copy.
at::Tensor heads_first(const at::Tensor& x_NHE, std::int64_t begin, std::int64_t length) {
  return x_NHE.narrow(0, begin, length).transpose(0, 1).unsqueeze(0);
}

at::Tensor tokens_first(const at::Tensor& x_1HLE) {
  return x_1HLE.squeeze(0).transpose(0, 1);
}

// Queries that meet keys together, and the keys that one of them sees; within a segment.
struct Piece {
  std::int64_t row, rows, first, keys;
};

// A whole segment where a fused kernel knows the rule.  Elsewhere few queries, so that nothing of length x
// length exists.
std::vector<Piece> pieces_of(std::int64_t length, const ScoreRule& rule) {
  if (rule.softcap == 0 && (rule.window == 0 || rule.window >= length)) return {{0, length, 0, length}};
  std::vector<Piece> pieces;
  for (std::int64_t row = 0; row < length; row += kAttentionPieceRows) {
    const auto rows = std::min(kAttentionPieceRows, length - row);
    const auto first = rule.window > 0 ? std::max<std::int64_t>(0, row + 1 - rule.window) : 0;
    pieces.push_back({row, rows, first, row + rows - first});
  }
  return pieces;
}

// Where no fused kernel takes heads that share keys, the library would form a matrix of length x length:
// there each head is given keys of its own.
at::Tensor fused_attention(const at::Tensor& q_1HLE, const at::Tensor& k_1KLE, const at::Tensor& v_1KLE,
                           const ScoreRule& rule) {
  const auto groups = q_1HLE.size(1) / k_1KLE.size(1);
  const auto attend = [&](const at::Tensor& k, const at::Tensor& v, bool shared) {
    return at::scaled_dot_product_attention(q_1HLE, k, v, {}, 0.0, /*is_causal=*/true, rule.scale, shared);
  };
  if (groups == 1) return attend(k_1KLE, v_1KLE, false);
  const auto choice = at::_fused_sdp_choice(q_1HLE, k_1KLE, v_1KLE, {}, 0.0, true, rule.scale, true);
  if (choice != static_cast<std::int64_t>(at::SDPBackend::math)) return attend(k_1KLE, v_1KLE, true);
  return attend(k_1KLE.repeat_interleave(groups, 1), v_1KLE.repeat_interleave(groups, 1), false);
}

at::Tensor attention_of_piece(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const Piece& piece, const ScoreRule& rule) {
  const bool whole = rule.softcap == 0 && piece.rows == piece.keys && piece.row == 0 &&
                     (rule.window == 0 || rule.window >= piece.rows);
  return whole ? fused_attention(q, k, v, rule) : composed_attention(q, k, v, piece.row - piece.first, rule);
}

// Sums of gradients of keys and values, which several pieces see; rounded once.
struct KeyGradients {
  at::Tensor gk_LKE, gv_LKE;

  KeyGradients(const at::Tensor& k_NKE, std::int64_t length) {
    const auto type = k_NKE.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    gk_LKE = at::zeros({length, k_NKE.size(1), k_NKE.size(2)}, k_NKE.options().dtype(type));
    gv_LKE = at::zeros_like(gk_LKE);
  }
  void add(const Piece& piece, const at::Tensor& gk, const at::Tensor& gv) {
    gk_LKE.narrow(0, piece.first, piece.keys).add_(tokens_first(gk));
    gv_LKE.narrow(0, piece.first, piece.keys).add_(tokens_first(gv));
  }
};

Attention attention(const at::Tensor& q_NHE, const at::Tensor& k_NKE, const at::Tensor& v_NKE,
                    const std::vector<std::int64_t>& starts, const ScoreRule& rule) {
  Attention result{at::empty(q_NHE.sizes(), q_NHE.options()), {}};
  for (std::size_t i = 0; i + 1 < starts.size(); ++i)
    for (const auto& piece : pieces_of(starts[i + 1] - starts[i], rule)) {
      const auto row = starts[i] + piece.row, first = starts[i] + piece.first;
      result.out_NHE.narrow(0, row, piece.rows)
          .copy_(tokens_first(attention_of_piece(heads_first(q_NHE, row, piece.rows),
                                                 heads_first(k_NKE, first, piece.keys),
                                                 heads_first(v_NKE, first, piece.keys), piece, rule)));
    }
  return result;
}

// Each kernel keeps something else for its backward.  So a piece is computed again under autograd, whose
// graph lives no longer than the piece: the same few lines on every device.
void attention_backward(const at::Tensor& gout_NHE, const at::Tensor& q_NHE, const at::Tensor& k_NKE,
                        const at::Tensor& v_NKE, const Attention&, const std::vector<std::int64_t>& starts,
                        at::Tensor gq_NHE, at::Tensor gk_NKE, at::Tensor gv_NKE, const ScoreRule& rule) {
  const auto leaf = [](const at::Tensor& x, std::int64_t begin, std::int64_t count) {
    return heads_first(x, begin, count).detach().requires_grad_(true);
  };
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    const auto begin = starts[i], length = starts[i + 1] - begin;
    const auto pieces = pieces_of(length, rule);
    std::optional<KeyGradients> sums;
    if (pieces.size() > 1) sums.emplace(k_NKE, length);
    for (const auto& piece : pieces) {
      const auto row = begin + piece.row, first = begin + piece.first;
      const auto gradients = [&] {
        const at::AutoGradMode recorded(true);
        const auto q = leaf(q_NHE, row, piece.rows), k = leaf(k_NKE, first, piece.keys),
                   v = leaf(v_NKE, first, piece.keys);
        return torch::autograd::grad({attention_of_piece(q, k, v, piece, rule)}, {q, k, v},
                                     {heads_first(gout_NHE, row, piece.rows)});
      }();
      gq_NHE.narrow(0, row, piece.rows).copy_(tokens_first(gradients[0]));
      if (sums) {
        sums->add(piece, gradients[1], gradients[2]);
        continue;
      }
      gk_NKE.narrow(0, begin, length).copy_(tokens_first(gradients[1]));
      gv_NKE.narrow(0, begin, length).copy_(tokens_first(gradients[2]));
    }
    if (!sums) continue;
    gk_NKE.narrow(0, begin, length).copy_(sums->gk_LKE);
    gv_NKE.narrow(0, begin, length).copy_(sums->gv_LKE);
  }
}

}  // namespace

at::Tensor composed_attention(const at::Tensor& q_HRE, const at::Tensor& k_KME, const at::Tensor& v_KME,
                              std::int64_t first_query, const ScoreRule& rule) {
  const auto groups = q_HRE.size(-3) / k_KME.size(-3);
  const auto k = k_KME.repeat_interleave(groups, -3), v = v_KME.repeat_interleave(groups, -3);
  auto scores = (at::matmul(q_HRE, k.transpose(-2, -1)) * rule.scale).to(statistics_type(q_HRE));
  if (rule.softcap > 0) scores = at::tanh(scores / rule.softcap) * rule.softcap;
  const auto ones = at::ones({q_HRE.size(-2), k.size(-2)}, scores.options().dtype(at::kBool));
  auto hidden = ones.triu(first_query + 1);
  if (rule.window > 0) hidden = hidden.logical_or(ones.tril(first_query - rule.window));
  const auto weights = at::softmax(scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()), -1);
  return at::matmul(weights.to(v.scalar_type()), v);
}

const AttentionKernels kAttention{.attention = attention, .attention_backward = attention_backward};

}  // namespace retort::kernels::device
