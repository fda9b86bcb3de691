// Attention, segment by segment and head by head.  A tile of queries meets all keys that it sees, so its
// softmax needs no second look: nothing of size length x length exists.
#include "retort/kernels/cpu/attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "retort/kernels/cpu/attention_parts.h"
#include "retort/kernels/cpu/attention_unit.h"
#include "retort/kernels/cpu/tiles.h"
#include "retort/kernels/tables.h"

namespace retort::kernels::cpu {
namespace {

// Each part of a head copies its keys and values anew.
constexpr double kForwardGrowth = 1.05;

// One thread's memory and work.  Shape legend beside that of attention.h: L tokens of the segment, P head_dim
// padded, R rows of a tile, M the keys that they see, padded.
template <typename T>
class HeadAttention {
 public:
  using C = typename ComputeOf<T>::type;

  HeadAttention(const at::Tensor& q_NHE, const at::Tensor& k_NKE, const at::Tensor& v_NKE,
                const Attention& to, const ScoreRule& rule, std::int64_t longest)
      : q_NHE_(q_NHE),
        k_NKE_(k_NKE),
        v_NKE_(v_NKE),
        to_(to),
        rule_(rule),
        work_(at::empty({forward_elements(longest, q_NHE.size(2))}, to.lse_HN.options())) {}

  void of_segment(std::int64_t begin, std::int64_t length, std::int64_t head, const TilePart& part) {
    const auto dim = q_NHE_.size(2), width = padded(dim), kv_head = head / (q_NHE_.size(1) / k_NKE_.size(1));
    Room<C> room(work_);
    const auto v_LP = room.take(length, width), k_EL = room.take(dim, padded(length));
    const auto q_RP = room.take(kForwardRows, width), out_RP = room.take(kForwardRows, width);
    const auto tile = room.take(kForwardRows, padded(length));
    C* const sum_R = room.take(1, kForwardRows).first;
    load_keys(begin, length, kv_head, k_EL, v_LP);
    const Rows<const T> queries(q_NHE_, begin, head);
    const Rows<T> outputs(to_.out_NHE, begin, head);
    C* const lse_L = data<C>(to_.lse_HN) + head * to_.lse_HN.stride(0) + begin;
    for (std::int64_t row = 0; row < length; row += kForwardRows) {
      if (!part.has(row / kForwardRows)) continue;
      const auto rows = std::min(kForwardRows, length - row), keys = row + rows;
      const auto first = first_key(row, rule_.window) / kProductColumns * kProductColumns;
      const auto seen = padded(keys) - first;
      load_rows(queries, row, rows, q_RP);
      kernels<C>().small_product(
          {q_RP.first, width, 1, k_EL.first + first, k_EL.stride, tile.first, seen, rows, dim, seen, false});
      kernels<C>().attention_softmax(tile.first, seen, scores_of(rule_), rows, seen, row + 1 - first, sum_R,
                                     lse_L + row);
      kernels<C>().small_product({tile.first, seen, 1, v_LP.row(first), width, out_RP.first, width, rows,
                                  keys - first, width, false});
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t i = 0; i < dim; ++i) out_RP.row(r)[i] /= sum_R[r];
      store_rows(out_RP, rows, outputs, row);
    }
  }

 private:
  // Heads of queries that share keys follow each other, and a segment's matrices always lie in one place.
  void load_keys(std::int64_t begin, std::int64_t length, std::int64_t kv_head, const Matrix<C>& k_EL,
                 const Matrix<C>& v_LP) {
    if (begin == loaded_begin_ && kv_head == loaded_head_) return;
    load_rows(Rows<const T>(k_NKE_, begin, kv_head), 0, length, v_LP);
    transpose(v_LP, length, q_NHE_.size(2), k_EL);
    load_rows(Rows<const T>(v_NKE_, begin, kv_head), 0, length, v_LP);
    loaded_begin_ = begin;
    loaded_head_ = kv_head;
  }

  const at::Tensor &q_NHE_, &k_NKE_, &v_NKE_;
  const Attention& to_;
  const ScoreRule& rule_;
  at::Tensor work_;
  std::int64_t loaded_begin_ = -1, loaded_head_ = -1;
};

// Of each segment the tiles from the one of `first_row` on.
Attention attention_from(std::int64_t first_row, const at::Tensor& q_NHE, const at::Tensor& k_NKE,
                         const at::Tensor& v_NKE, const std::vector<std::int64_t>& starts,
                         const ScoreRule& rule) {
  const auto tokens = q_NHE.size(0), heads = q_NHE.size(1);
  const Attention result{at::empty({tokens, heads, q_NHE.size(2)}, q_NHE.options()),
                         at::empty({heads, tokens}, q_NHE.options().dtype(statistics_type(q_NHE)))};
  const auto segments = static_cast<std::int64_t>(starts.size()) - 1, longest = longest_segment(starts);
  const auto first_tile = first_row / kForwardRows;
  const auto parts = best_parts(segments * heads, tiles_of(longest, kForwardRows) - first_tile,
                                at::get_num_threads(), kForwardGrowth);
  const auto on_heads = [&](auto make) {
    at::parallel_for(0, segments * heads * parts, 1, [&](std::int64_t first, std::int64_t last) {
      auto attention = make();
      for (auto i = first; i < last; ++i) {
        const auto s = static_cast<std::size_t>(i / parts / heads);
        attention.of_segment(starts[s], starts[s + 1] - starts[s], i / parts % heads,
                             {i % parts, parts, first_tile});
      }
    });
  };
  if (suits_matrix_unit(q_NHE))
    on_heads([&] { return UnitAttention(q_NHE, k_NKE, v_NKE, result, rule, longest); });
  else
    with_element(q_NHE, [&](auto element) {
      using T = typename decltype(element)::type;
      on_heads([&] { return HeadAttention<T>(q_NHE, k_NKE, v_NKE, result, rule, longest); });
    });
  return result;
}

Attention attention(const at::Tensor& q_NHE, const at::Tensor& k_NKE, const at::Tensor& v_NKE,
                    const std::vector<std::int64_t>& starts, const ScoreRule& rule) {
  return attention_from(0, q_NHE, k_NKE, v_NKE, starts, rule);
}

}  // namespace

at::Tensor attention_of_end(const at::Tensor& q_NHE, const at::Tensor& k_TKE, const at::Tensor& v_TKE,
                            const ScoreRule& rule) {
  const auto rows = q_NHE.size(0), tokens = k_TKE.size(0), before = tokens - rows;
  // Queries of the first tile that nobody asks for are zero; those of tiles before it are not looked at.
  const auto tile_start = before / kForwardRows * kForwardRows;
  const auto all_THE = at::empty({tokens, q_NHE.size(1), q_NHE.size(2)}, q_NHE.options());
  all_THE.narrow(0, tile_start, before - tile_start).zero_();
  all_THE.narrow(0, before, rows).copy_(q_NHE);
  return attention_from(before, all_THE, k_TKE, v_TKE, {0, tokens}, rule).out_NHE.narrow(0, before, rows);
}

const AttentionKernels kAttention{.attention = attention, .attention_backward = attention_backward};

}  // namespace retort::kernels::cpu
