// The gradient of attention, segment by segment and head of keys by head of keys.  Rows of queries meet keys
// in tiles that stay in the cache: nothing of size length x length exists, and no tile lies wholly behind the
// diagonal.  All of it is computed in float32 at least: bfloat16 is too coarse to be exponentiated.
// attention_unit.h has another way for bfloat16. Source: Dao et al. 2022, algorithm 4; the log-sum-exp comes
// from the forward pass.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "retort/kernels/cpu/attention.h"
#include "retort/kernels/cpu/attention_parts.h"
#include "retort/kernels/cpu/attention_unit.h"
#include "retort/kernels/cpu/dispatch.h"
#include "retort/kernels/cpu/tiles.h"

namespace retort::kernels::cpu {
namespace {

// A divided head computes its scores, and their gradients, once for the queries and once for the keys.
constexpr double kBackwardGrowth = 1.4;

// One thread's memory and work.  Shape legend beside that of attention.h: L tokens of the segment, P head_dim
// padded, R rows of a tile, M its keys padded.
template <typename T>
class HeadGradient {
 public:
  using C = typename ComputeOf<T>::type;

  HeadGradient(const AttentionGradient& x, std::int64_t longest)
      : x_(x),
        work_(at::empty({backward_elements(longest, x.head_dim())}, x.forward.lse_HN.options())),
        padded_dim_(padded(x.head_dim())) {}

  void of_segment(std::int64_t begin, std::int64_t length, std::int64_t kv_head, const TilePart& part) {
    begin_ = begin;
    length_ = length;
    lay_out();
    load_rows(Rows<const T>(x_.v_NKE, begin, kv_head), 0, length, k_LP_);
    transpose(k_LP_, length, x_.head_dim(), v_EL_);
    load_rows(Rows<const T>(x_.k_NKE, begin, kv_head), 0, length, k_LP_);
    transpose(k_LP_, length, x_.head_dim(), k_EL_);
    std::fill_n(gk_LP_.first, length * padded_dim_, C(0));
    std::fill_n(gv_LP_.first, length * padded_dim_, C(0));
    for (std::int64_t member = 0; member < x_.groups(); ++member)
      for (std::int64_t row = 0; row < length; row += kTileRows)
        of_rows(kv_head * x_.groups() + member, row, std::min(kTileRows, length - row), part);
    for (std::int64_t key = 0; key < length; key += kTileKeys) {
      if (!part.has(key / kTileKeys)) continue;
      const auto keys = std::min(kTileKeys, length - key);
      store_rows(Matrix<C>{gk_LP_.row(key), padded_dim_}, keys, Rows<T>(x_.gk_NKE, begin, kv_head), key);
      store_rows(Matrix<C>{gv_LP_.row(key), padded_dim_}, keys, Rows<T>(x_.gv_NKE, begin, kv_head), key);
    }
  }

 private:
  void lay_out() {
    Room<C> room(work_);
    for (auto* matrix : {&k_LP_, &gk_LP_, &gv_LP_}) *matrix = room.take(length_, padded_dim_);
    for (auto* matrix : {&k_EL_, &v_EL_}) *matrix = room.take(x_.head_dim(), padded(length_));
    for (auto* matrix : {&q_RP_, &g_RP_, &gq_RP_}) *matrix = room.take(kTileRows, padded_dim_);
    for (auto** tile : {&scores_RM_, &gradients_RM_}) *tile = room.take(kTileRows, kTileKeys).first;
    delta_R_ = room.take(1, kTileRows).first;
  }

  // Queries `row`.. of one head against the keys that they see.  The part has the gradient of these queries,
  // or of some of the keys, or of both.
  void of_rows(std::int64_t head, std::int64_t row, std::int64_t rows, const TilePart& part) {
    const bool has_queries = part.has(row / kTileRows);
    if (!has_queries && !part.has_any(tiles_of(row + rows, kTileKeys))) return;
    load_rows(Rows<const T>(x_.q_NHE, begin_, head), row, rows, q_RP_);
    load_rows(Rows<const T>(x_.gout_NHE, begin_, head), row, rows, g_RP_);
    const Rows<const T> out(x_.forward.out_NHE, begin_, head);
    for (std::int64_t r = 0; r < rows; ++r) {
      C sum = 0;
      for (std::int64_t i = 0; i < out.head_dim; ++i) sum += g_RP_.row(r)[i] * widened(out.row(row + r)[i]);
      delta_R_[r] = sum;
    }
    const C* lse_R = data<C>(x_.forward.lse_HN) + head * x_.forward.lse_HN.stride(0) + begin_ + row;
    const auto first = first_key(row, x_.rule.window) / kTileKeys * kTileKeys;
    for (auto key = first; key < row + rows; key += kTileKeys)
      if (const bool has_keys = part.has(key / kTileKeys); has_queries || has_keys)
        of_tile(lse_R, {row, rows, has_queries}, {key, std::min(kTileKeys, row + rows - key), has_keys},
                key > first);
    if (has_queries) store_rows(gq_RP_, rows, Rows<T>(x_.gq_NHE, begin_, head), row);
  }

  struct Side {
    std::int64_t first, count;
    bool wanted;  ///< its gradient
  };

  // `add`: to the gradient of these queries by earlier tiles.
  void of_tile(const C* lse_R, const Side& queries, const Side& with, bool add) {
    const auto [row, rows, has_queries] = queries;
    const auto [key, keys, has_keys] = with;
    const auto& small = kernels<C>().small_product;
    const auto dim = x_.head_dim(), width = padded(keys), p = padded_dim_;
    small({q_RP_.first, p, 1, k_EL_.first + key, k_EL_.stride, scores_RM_, width, rows, dim, width, false});
    small(
        {g_RP_.first, p, 1, v_EL_.first + key, v_EL_.stride, gradients_RM_, width, rows, dim, width, false});
    kernels<C>().attention_gradients(scores_RM_, scores_RM_, gradients_RM_, lse_R, delta_R_,
                                     scores_of(x_.rule), rows, width, row + 1 - key);
    if (has_queries) small({gradients_RM_, width, 1, k_LP_.row(key), p, gq_RP_.first, p, rows, keys, p, add});
    if (!has_keys) return;
    small({gradients_RM_, 1, width, q_RP_.first, p, gk_LP_.row(key), p, keys, rows, p, true});
    small({scores_RM_, 1, width, g_RP_.first, p, gv_LP_.row(key), p, keys, rows, p, true});
  }

  const AttentionGradient x_;
  at::Tensor work_;
  std::int64_t padded_dim_, begin_ = 0, length_ = 0;
  Matrix<C> k_LP_{}, gk_LP_{}, gv_LP_{}, k_EL_{}, v_EL_{}, q_RP_{}, g_RP_{}, gq_RP_{};
  C *scores_RM_ = nullptr, *gradients_RM_ = nullptr, *delta_R_ = nullptr;
};

}  // namespace

void attention_backward(const at::Tensor& gout_NHE, const at::Tensor& q_NHE, const at::Tensor& k_NKE,
                        const at::Tensor& v_NKE, const Attention& forward,
                        const std::vector<std::int64_t>& starts, at::Tensor gq_NHE, at::Tensor gk_NKE,
                        at::Tensor gv_NKE, const ScoreRule& rule) {
  const AttentionGradient operands{gout_NHE, q_NHE, k_NKE, v_NKE, forward, gq_NHE, gk_NKE, gv_NKE, rule};
  const auto kv_heads = k_NKE.size(1), segments = static_cast<std::int64_t>(starts.size()) - 1,
             longest = longest_segment(starts);
  const auto parts =
      best_parts(segments * kv_heads, tiles_of(longest, kTileKeys), at::get_num_threads(), kBackwardGrowth);
  const auto on_heads = [&](auto make) {
    at::parallel_for(0, segments * kv_heads * parts, 1, [&](std::int64_t first, std::int64_t last) {
      auto gradient = make();
      for (auto i = first; i < last; ++i) {
        const auto s = static_cast<std::size_t>(i / parts / kv_heads);
        gradient.of_segment(starts[s], starts[s + 1] - starts[s], i / parts % kv_heads, {i % parts, parts});
      }
    });
  };
  if (suits_matrix_unit(q_NHE))
    on_heads([&] { return UnitGradient(operands, longest); });
  else
    with_element(q_NHE, [&](auto element) {
      using T = typename decltype(element)::type;
      on_heads([&] { return HeadGradient<T>(operands, longest); });
    });
}

}  // namespace retort::kernels::cpu
