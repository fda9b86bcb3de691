#include "retort/kernels/cpu/attention_unit.h"

#include <algorithm>
#include <cstring>

#include "retort/kernels/cpu/attention.h"
#include "retort/kernels/cpu/matrix_unit.h"

namespace retort::kernels::cpu {
namespace {

// Deals out float32 memory, to whoever needs it.
class Dealer {
 public:
  explicit Dealer(const at::Tensor& memory) : next_(data<float>(memory)) {}
  template <typename E>
  E* take(std::int64_t elements) {
    auto* const taken = reinterpret_cast<E*>(next_);
    next_ += elements * static_cast<std::int64_t>(sizeof(E)) / static_cast<std::int64_t>(sizeof(float));
    return taken;
  }

 private:
  float* next_;
};

void copy_rows(const Rows<const Bf16>& from, std::int64_t begin, std::int64_t rows, std::int64_t padded_rows,
               Bf16* to) {
  const auto bytes = static_cast<std::size_t>(from.head_dim) * sizeof(Bf16);
  for (std::int64_t n = 0; n < rows; ++n) std::memcpy(to + n * from.head_dim, from.row(begin + n), bytes);
  std::memset(to + rows * from.head_dim, 0, static_cast<std::size_t>(padded_rows - rows) * bytes);
}

}  // namespace

bool suits_matrix_unit(const at::Tensor& q_NHE) {
  return q_NHE.scalar_type() == at::kBFloat16 && suits_matrix_unit(q_NHE.size(2));
}

UnitAttention::UnitAttention(const at::Tensor& q_NHE, const at::Tensor& k_NKE, const at::Tensor& v_NKE,
                             const Attention& to, const ScoreRule& rule, std::int64_t longest)
    : q_NHE_(q_NHE),
      k_NKE_(k_NKE),
      v_NKE_(v_NKE),
      to_(to),
      rule_(rule),
      dim_(q_NHE.size(2)),
      stride_(unit_stride(longest)),
      work_(at::empty({unit_forward_elements(longest, dim_)}, to.lse_HN.options())) {
  Dealer dealer(work_);
  k_EM_ = dealer.take<std::uint32_t>(dim_ / 2 * stride_);
  v_ME_ = dealer.take<std::uint32_t>(stride_ / 2 * dim_);
  q_RE_ = dealer.take<Bf16>(kForwardRows * dim_);
  p_RM_ = dealer.take<Bf16>(kForwardRows * stride_);
  scores_RM_ = dealer.take<float>(kForwardRows * stride_);
  out_RE_ = dealer.take<float>(kForwardRows * dim_);
  sum_R_ = dealer.take<float>(kForwardRows);
}

UnitAttention::~UnitAttention() {
  release_matrix_unit();
}

// Heads of queries that share keys follow each other.
void UnitAttention::load_keys(std::int64_t begin, std::int64_t length, std::int64_t kv_head) {
  if (begin == loaded_begin_ && kv_head == loaded_head_) return;
  const Rows<const Bf16> keys(k_NKE_, begin, kv_head), values(v_NKE_, begin, kv_head);
  unit_kernels().pairs_of_columns(keys.first, keys.stride, length, dim_, rounded_up_for_unit(length), stride_,
                                  k_EM_);
  unit_kernels().pairs_of_rows(values.first, values.stride, length, dim_, rounded_up_for_unit(length), v_ME_);
  loaded_begin_ = begin;
  loaded_head_ = kv_head;
}

void UnitAttention::of_segment(std::int64_t begin, std::int64_t length, std::int64_t head,
                               const TilePart& part) {
  load_keys(begin, length, head / (q_NHE_.size(1) / k_NKE_.size(1)));
  const Rows<const Bf16> queries(q_NHE_, begin, head);
  const Rows<Bf16> outputs(to_.out_NHE, begin, head);
  auto* const lse_L = data<float>(to_.lse_HN) + head * to_.lse_HN.stride(0) + begin;
  for (std::int64_t row = 0; row < length; row += kForwardRows) {
    if (!part.has(row / kForwardRows)) continue;
    const auto rows = std::min(kForwardRows, length - row);
    of_rows(row, rows, queries, lse_L + row);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t i = 0; i < dim_; ++i) out_RE_[r * dim_ + i] /= sum_R_[r];
    store_rows(Matrix<float>{out_RE_, dim_}, rows, outputs, row);
  }
}

void UnitAttention::of_rows(std::int64_t row, std::int64_t rows, const Rows<const Bf16>& queries,
                            float* lse_R) {
  const auto padded_rows = rounded_up_for_unit(rows);
  const auto first = first_key(row, rule_.window) / kUnitStep * kUnitStep,
             seen = rounded_up_for_unit(row + rows) - first;
  copy_rows(queries, row, rows, padded_rows, q_RE_);
  for (std::int64_t key = 0; key < seen; key += kTileKeys)
    unit_product({q_RE_, dim_, k_EM_ + first + key, stride_, scores_RM_ + key, stride_, padded_rows, dim_,
                  std::min(kTileKeys, seen - key), false});
  kernels<float>().attention_softmax(scores_RM_, stride_, scores_of(rule_), rows, seen, row + 1 - first,
                                     sum_R_, lse_R);
  unit_kernels().narrow_rows(scores_RM_, stride_, padded_rows, seen, p_RM_);
  for (std::int64_t key = 0; key < seen; key += kTileKeys)
    unit_product({p_RM_ + key, stride_, v_ME_ + (first + key) / 2 * dim_, dim_, out_RE_, dim_, padded_rows,
                  std::min(kTileKeys, seen - key), dim_, key > 0});
}

UnitGradient::UnitGradient(const AttentionGradient& of, std::int64_t longest)
    : of_(of),
      dim_(of.head_dim()),
      stride_(unit_stride(longest)),
      work_(at::empty({unit_backward_elements(longest, dim_)}, of.forward.lse_HN.options())) {
  Dealer dealer(work_);
  k_ME_ = dealer.take<Bf16>(stride_ * dim_);
  v_ME_ = dealer.take<Bf16>(stride_ * dim_);
  k_EM_ = dealer.take<Bf16>(dim_ * stride_);
  words_EM_ = dealer.take<std::uint32_t>(dim_ / 2 * stride_);
  gk_ME_ = dealer.take<float>(stride_ * dim_);
  gv_ME_ = dealer.take<float>(stride_ * dim_);
  for (auto** words : {&q_ER_, &g_ER_, &q_RE_, &g_RE_})
    *words = dealer.take<std::uint32_t>(dim_ / 2 * kTileRows);
  gq_ER_ = dealer.take<float>(dim_ * kTileRows);
  for (auto** tile : {&scores_MR_, &gp_MR_}) *tile = dealer.take<float>(kTileKeys * kTileRows);
  for (auto** tile : {&p_MR_, &ds_MR_}) *tile = dealer.take<Bf16>(kTileKeys * kTileRows);
  ds_pairs_MR_ = dealer.take<std::uint32_t>(kTileKeys / 2 * kTileRows);
  lse_R_ = dealer.take<float>(kTileRows);
  delta_R_ = dealer.take<float>(kTileRows);
}

UnitGradient::~UnitGradient() {
  release_matrix_unit();
}

void UnitGradient::load_keys(std::int64_t kv_head) {
  const Rows<const Bf16> keys(of_.k_NKE, begin_, kv_head), values(of_.v_NKE, begin_, kv_head);
  const auto padded = rounded_up_for_unit(length_);
  copy_rows(keys, 0, length_, padded, k_ME_);
  copy_rows(values, 0, length_, padded, v_ME_);
  unit_kernels().pairs_of_columns(k_ME_, dim_, padded, dim_, padded, stride_, words_EM_);
  unit_kernels().unpaired(words_EM_, stride_, dim_ / 2, padded, k_EM_);
  std::fill_n(gk_ME_, padded * dim_, 0.0f);
  std::fill_n(gv_ME_, padded * dim_, 0.0f);
}

void UnitGradient::of_segment(std::int64_t begin, std::int64_t length, std::int64_t kv_head,
                              const TilePart& part) {
  begin_ = begin;
  length_ = length;
  load_keys(kv_head);
  for (std::int64_t member = 0; member < of_.groups(); ++member)
    for (std::int64_t row = 0; row < length; row += kTileRows)
      of_rows(kv_head * of_.groups() + member, row, std::min(kTileRows, length - row), part);
  for (std::int64_t key = 0; key < length; key += kTileKeys) {
    if (!part.has(key / kTileKeys)) continue;
    const auto keys = std::min(kTileKeys, length - key);
    const auto store = [&](float* gradient_ME, const at::Tensor& to_NKE) {
      store_rows(Matrix<float>{gradient_ME + key * dim_, dim_}, keys, Rows<Bf16>(to_NKE, begin, kv_head),
                 key);
    };
    store(gk_ME_, of_.gk_NKE);
    store(gv_ME_, of_.gv_NKE);
  }
}

void UnitGradient::load_queries(std::int64_t head, std::int64_t row, std::int64_t rows) {
  const Rows<const Bf16> queries(of_.q_NHE, begin_, head), gradients(of_.gout_NHE, begin_, head),
      outputs(of_.forward.out_NHE, begin_, head);
  const auto padded = rounded_up_for_unit(rows);
  const auto load = [&](const Rows<const Bf16>& from, std::uint32_t* by_columns, std::uint32_t* by_rows) {
    unit_kernels().pairs_of_columns(from.row(row), from.stride, rows, dim_, padded, kTileRows, by_columns);
    unit_kernels().pairs_of_rows(from.row(row), from.stride, rows, dim_, padded, by_rows);
  };
  load(queries, q_ER_, q_RE_);
  load(gradients, g_ER_, g_RE_);
  unit_kernels().dots(gradients.row(row), gradients.stride, outputs.row(row), outputs.stride, rows, dim_,
                      delta_R_);
  const auto& lse_HN = of_.forward.lse_HN;
  std::copy_n(data<float>(lse_HN) + head * lse_HN.stride(0) + begin_ + row, rows, lse_R_);
  std::fill(lse_R_ + rows, lse_R_ + padded, 0.0f);
  std::fill(delta_R_ + rows, delta_R_ + padded, 0.0f);
}

// Queries `row`.. of one head against the keys that they see.  The part has the gradient of these queries, or
// of some of the keys, or of both.
void UnitGradient::of_rows(std::int64_t head, std::int64_t row, std::int64_t rows, const TilePart& part) {
  const bool has_queries = part.has(row / kTileRows);
  if (!has_queries && !part.has_any(tiles_of(row + rows, kTileKeys))) return;
  load_queries(head, row, rows);
  const auto first = first_key(row, of_.rule.window) / kTileKeys * kTileKeys;
  for (auto key = first; key < row + rows; key += kTileKeys)
    if (const bool has_keys = part.has(key / kTileKeys); has_queries || has_keys)
      of_tile(row, rows, has_queries, key, has_keys, key > first);
  if (!has_queries) return;
  const Rows<Bf16> to(of_.gq_NHE, begin_, head);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = 0; i < dim_; ++i) narrow(gq_ER_[i * kTileRows + r], to.row(row + r)[i]);
}

// `add`: to the gradient of these queries by earlier tiles.
void UnitGradient::of_tile(std::int64_t row, std::int64_t rows, bool has_queries, std::int64_t key,
                           bool has_keys, bool add) {
  const auto keys = std::min(kTileKeys, row + rows - key), padded_keys = rounded_up_for_unit(keys);
  const auto padded_rows = rounded_up_for_unit(rows);
  const auto scores = [&](const Bf16* of_ME, const std::uint32_t* with_ER, float* out_MR) {
    unit_product({of_ME + key * dim_, dim_, with_ER, kTileRows, out_MR, kTileRows, padded_keys, dim_,
                  padded_rows, false});
  };
  scores(k_ME_, q_ER_, scores_MR_);
  scores(v_ME_, g_ER_, gp_MR_);
  unit_kernels().attention_gradients(
      {scores_MR_, gp_MR_, lse_R_, delta_R_, kTileRows, row, rows, padded_rows, key, keys, padded_keys},
      scores_of(of_.rule), p_MR_, ds_MR_);
  if (has_queries) {
    unit_kernels().pairs_of_rows(ds_MR_, kTileRows, padded_keys, kTileRows, padded_keys, ds_pairs_MR_);
    unit_product({k_EM_ + key, stride_, ds_pairs_MR_, kTileRows, gq_ER_, kTileRows, dim_, padded_keys,
                  padded_rows, add});
  }
  if (!has_keys) return;
  const auto by_keys = [&](const Bf16* with_MR, const std::uint32_t* of_RE, float* out_ME) {
    unit_product(
        {with_MR, kTileRows, of_RE, dim_, out_ME + key * dim_, dim_, padded_keys, padded_rows, dim_, true});
  };
  by_keys(ds_MR_, q_RE_, gk_ME_);
  by_keys(p_MR_, g_RE_, gv_ME_);
}

}  // namespace retort::kernels::cpu
