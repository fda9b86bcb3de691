#pragma once
// Attention of bfloat16 on a matrix unit: scores, probabilities and their gradients have float32 sums;
// between two products they are rounded to bfloat16, as on accelerators.

#include <ATen/core/Tensor.h>

#include "retort/kernels/cpu/attention_parts.h"
#include "retort/kernels/cpu/tiles.h"
#include "retort/kernels/types.h"

namespace retort::kernels::cpu {

/// Whether heads of this shape can be computed so.
bool suits_matrix_unit(const at::Tensor& q_NHE);

/// One thread's memory and work, forward.
class UnitAttention {
 public:
  UnitAttention(const at::Tensor& q_NHE, const at::Tensor& k_NKE, const at::Tensor& v_NKE,
                const Attention& to, const ScoreRule& rule, std::int64_t longest);
  ~UnitAttention();
  UnitAttention(const UnitAttention&) = delete;
  UnitAttention& operator=(const UnitAttention&) = delete;

  void of_segment(std::int64_t begin, std::int64_t length, std::int64_t head, const TilePart& part);

 private:
  void load_keys(std::int64_t begin, std::int64_t length, std::int64_t kv_head);
  void of_rows(std::int64_t row, std::int64_t rows, const Rows<const Bf16>& queries, float* lse_R);

  const at::Tensor &q_NHE_, &k_NKE_, &v_NKE_;
  const Attention& to_;
  const ScoreRule& rule_;
  std::int64_t dim_, stride_;
  at::Tensor work_;
  std::int64_t loaded_begin_ = -1, loaded_head_ = -1;
  std::uint32_t *k_EM_ = nullptr, *v_ME_ = nullptr;  // in pairs
  Bf16 *q_RE_ = nullptr, *p_RM_ = nullptr;
  float *scores_RM_ = nullptr, *out_RE_ = nullptr, *sum_R_ = nullptr;
};

/// The arguments of the gradient.
struct AttentionGradient {
  const at::Tensor &gout_NHE, &q_NHE, &k_NKE, &v_NKE;
  const Attention& forward;
  const at::Tensor &gq_NHE, &gk_NKE, &gv_NKE;
  const ScoreRule& rule;

  std::int64_t head_dim() const { return q_NHE.size(2); }
  std::int64_t groups() const { return q_NHE.size(1) / k_NKE.size(1); }
};

/// One thread's memory and work, backward.  Tiles have keys as rows, so that no probability is transposed.
class UnitGradient {
 public:
  UnitGradient(const AttentionGradient& of, std::int64_t longest);
  ~UnitGradient();
  UnitGradient(const UnitGradient&) = delete;
  UnitGradient& operator=(const UnitGradient&) = delete;

  void of_segment(std::int64_t begin, std::int64_t length, std::int64_t kv_head, const TilePart& part);

 private:
  void load_keys(std::int64_t kv_head);
  void load_queries(std::int64_t head, std::int64_t row, std::int64_t rows);
  void of_rows(std::int64_t head, std::int64_t row, std::int64_t rows, const TilePart& part);
  void of_tile(std::int64_t row, std::int64_t rows, bool has_queries, std::int64_t key, bool has_keys,
               bool add);

  const AttentionGradient of_;
  std::int64_t dim_, stride_;  // elements between rows of transposed keys
  at::Tensor work_;
  std::int64_t begin_ = 0, length_ = 0;
  Bf16 *k_ME_ = nullptr, *v_ME_ = nullptr, *k_EM_ = nullptr, *p_MR_ = nullptr, *ds_MR_ = nullptr;
  std::uint32_t *words_EM_ = nullptr, *q_ER_ = nullptr, *g_ER_ = nullptr, *q_RE_ = nullptr, *g_RE_ = nullptr,
                *ds_pairs_MR_ = nullptr;
  float *gk_ME_ = nullptr, *gv_ME_ = nullptr, *gq_ER_ = nullptr, *scores_MR_ = nullptr, *gp_MR_ = nullptr,
        *lse_R_ = nullptr, *delta_R_ = nullptr;
};

}  // namespace retort::kernels::cpu
