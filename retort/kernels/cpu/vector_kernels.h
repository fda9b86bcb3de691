#pragma once
// The CPU loops of ops/, one table per element type, compiled once per instruction set and chosen when first
// used. Torch-free: the same source is built with wider vector flags, so it must not instantiate anybody
// else's inline code.
//
// Shape legend: N rows (tokens), D hidden, I width of an MLP, V vocabulary, H heads, E head_dim.
// All matrices are dense and row-major.  Each function works on `rows` rows; callers split rows over threads.

#include <cstddef>
#include <cstdint>

#include "retort/kernels/logit_term.h"

namespace retort::kernels {

/// A bfloat16 number as it lies in memory.
struct Bf16 {
  std::uint16_t bits;
};

/// What type a kernel computes in for an element type: double for double, float otherwise.
template <typename T>
struct ComputeOf {
  using type = float;
};
template <>
struct ComputeOf<double> {
  using type = double;
};

/// A chunk of logits, what it is compared with, and where its gradient goes; rows lie `stride` apart.
template <typename T>
struct LogitRows {
  const T* student_NV;
  std::int64_t student_stride;
  const T* teacher_NK;  ///< null: no term compares with a teacher
  std::int64_t teacher_stride;
  const std::int64_t* targets;  ///< -1: the row does not count
  T* grad_NV;                   ///< may be the student's
  std::int64_t grad_stride;
  std::int64_t vocab, shared;  ///< V, and K: the first columns, which divergences compare
};
/// Numbers that the losses on rows of `vocab` logits work in.
constexpr std::int64_t logit_loss_elements(std::int64_t vocab) {
  constexpr std::int64_t kWidestBlock = 32;
  return 3 * (vocab + kWidestBlock);
}

/// How attention makes its scores; as kernels::ScoreRule, with a scale.
struct Scores {
  double scale;
  double softcap;       ///< 0: none
  std::int64_t window;  ///< 0: none
};

/// The largest entry of a row of logits, the first of equals, and the log of the row's sum of exponentials.
template <typename C>
struct RowSum {
  C top;
  std::int64_t top_index;
  double log_sum;
};

/// out = a b, or out += a b.  Element (m, k) of `a` lies at m * a_row + k * a_column, so a may be a
/// transpose; rows of b and of out are dense.  `columns` is a multiple of kProductColumns.
template <typename C>
struct SmallProduct {
  const C* a;
  std::int64_t a_row, a_column;
  const C* b;
  std::int64_t b_row;
  C* out;
  std::int64_t out_row;
  std::int64_t rows, inner, columns;
  bool add;
};
/// Elements of the widest vector.
inline constexpr std::int64_t kProductColumns = 16;

/// out = x W^T, or out += x W^T, for kPanelColumns rows of W, which are packed.
template <typename T>
struct PanelProduct {
  using C = typename ComputeOf<T>::type;
  const T* panel;
  const C* x;
  std::int64_t x_row;
  C* out;
  std::int64_t out_row;
  std::int64_t rows, inner;  ///< of x
  bool add;
};
inline constexpr std::int64_t kPanelColumns = 32;

/// A query head, and the keys and values of its text in pages of `page_tokens` rows of `stride` elements.
template <typename T>
struct PagedQuery {
  const T *q_E, *k, *v;
  const std::int32_t* pages;
  std::int64_t page_tokens;
  std::int64_t first, tokens;  ///< those that it sees: [first, tokens)
  std::int64_t stride, head_dim;
};

struct AdamWStep {
  double lr, beta1, beta2, eps, weight_decay;
  double correction1, correction2;  ///< 1 - beta^step
  double gradient_scale;            ///< clipping
};

template <typename T>
struct VectorKernels {
  using C = typename ComputeOf<T>::type;

  /// y = w * x / rms(x); rstd_N keeps 1 / rms.
  void (*rms_norm_forward)(const T* x_ND, const T* w_D, double eps, std::int64_t rows, std::int64_t dim,
                           T* y_ND, C* rstd_N);
  /// gx = residual + d/dx, without residual where it is null; adds the rows' d/dw to gw_D.
  void (*rms_norm_backward)(const T* gy_ND, const T* x_ND, const T* w_D, const C* rstd_N,
                            const T* residual_ND, std::int64_t rows, std::int64_t dim, T* gx_ND, C* gw_D);
  /// Rotates the first 2 * `half` channels of `heads` heads in place in rows that are `stride` elements
  /// apart; sign -1 gives the gradient.
  void (*rope)(T* x, const float* cos_NE, const float* sin_NE, std::int64_t rows, std::int64_t stride,
               std::int64_t heads, std::int64_t head_dim, std::int64_t half, double sign);
  /// out = silu(gate) * up, or gelu(gate) * up by tanh, with gate_up rows [gate | up].
  void (*swiglu_forward)(const T* gate_up_N2I, std::int64_t rows, std::int64_t width, T* out_NI);
  void (*geglu_forward)(const T* gate_up_N2I, std::int64_t rows, std::int64_t width, T* out_NI);
  /// Gradient of gate_up; also writes out again.  grad may be gate_up itself.
  void (*swiglu_backward)(const T* gout_NI, const T* gate_up_N2I, std::int64_t rows, std::int64_t width,
                          T* grad_N2I, T* out_NI);
  void (*geglu_backward)(const T* gout_NI, const T* gate_up_N2I, std::int64_t rows, std::int64_t width,
                         T* grad_N2I, T* out_NI);
  /// Adds the value of each term to `values`, and writes the sum of their gradients.  `work` has room for
  /// logit_loss_elements(vocab).
  void (*logit_losses)(const LogitRows<T>& of, std::int64_t rows, const LogitTerm* terms, int count, C* work,
                       double* values);
  /// Of one row.
  RowSum<C> (*row_sum)(const T* logits_V, std::int64_t vocab);
  /// Like row_sum, as if the entries `ids_K` were not there; `copy_V` is memory to work in.  `least` gets the
  /// smallest entry of the whole row.
  RowSum<C> (*row_sum_without)(const T* logits_V, const std::int32_t* ids_K, std::int64_t kept,
                               std::int64_t vocab, C* copy_V, C* least);
  /// KL(teacher || student) of one row; `gap` is the student's log-sum minus the teacher's.
  double (*row_divergence)(const T* student_V, const T* teacher_V, double teacher_log_sum, double gap,
                           std::int64_t vocab);
  /// Sums of (s - t)^2 and t^2 over `count` elements.
  void (*square_sums)(const T* s, const T* t, std::int64_t count, double* error, double* teacher);
  /// out = factor * (s - t).
  void (*scaled_difference)(const T* s, const T* t, double factor, std::int64_t count, T* out);
  /// Rows of attention's backward: probabilities p = exp(scale * scores - lse), and in place of the gradients
  /// of the probabilities, those of the scores: scale * p * (g - delta).  Row r sees the first `visible + r`
  /// of `keys` keys, of these the last `window`; both are 0 elsewhere.  p may be the scores.
  void (*attention_gradients)(const C* scores_RM, T* p_RM, T* gradients_RM, const C* lse_R, const C* delta_R,
                              const Scores& of, std::int64_t rows, std::int64_t keys, std::int64_t visible);
  /// softmax(scale q k^T) v of one query head, with keys and values in pages.  `work` has room for
  /// tokens - first + 2 head_dim numbers.
  void (*attend_pages)(const PagedQuery<T>& query, const Scores& of, C* work, T* out_E);
  /// Softmax of rows of scores times `scale`, in their place and not yet divided by sum_R; lse_R gets the
  /// log-sum-exp.  Row r sees the first `visible + r` of `keys` keys, of these the last `window`; elsewhere
  /// it gets 0.  Rows lie `stride` apart.
  void (*attention_softmax)(C* scores_RM, std::int64_t stride, const Scores& of, std::int64_t rows,
                            std::int64_t keys, std::int64_t visible, C* sum_R, C* lse_R);
  /// For matrices that stay in the cache.
  void (*small_product)(const SmallProduct<C>& product);
  /// A row of the result has the same bits whatever rows are beside it.
  void (*panel_product)(const PanelProduct<T>& product);
  /// Writes `rows` (at most kPanelColumns) rows of W, `row_elements` apart, as a panel of `inner` words.
  void (*pack_panel)(const T* w_MK, std::int64_t row_elements, std::int64_t rows, std::int64_t inner,
                     T* panel);
};

/// A tile of attention's backward with keys as rows.  Row r of the queries is token `first_row + r` of the
/// segment, key m is token `first_key + m`.  Rows of all matrices lie `stride` apart.
struct TransposedTile {
  const float* scores_MR;
  const float* gradients_MR;  ///< of the probabilities
  const float *lse_R, *delta_R;
  std::int64_t stride, first_row, rows, padded_rows, first_key, keys, padded_keys;
};

/// What a matrix unit for bfloat16 needs around its products.  A matrix in pairs has a word of 32 bits for
/// elements (2i, j) and (2i + 1, j).  Columns are a multiple of 32, padded rows of an even number.
struct Bf16TileKernels {
  /// Rows `stride` apart, as pairs; zeros up to `padded_rows`.
  void (*pairs_of_rows)(const Bf16* x, std::int64_t stride, std::int64_t rows, std::int64_t columns,
                        std::int64_t padded_rows, std::uint32_t* out);
  /// The transpose of such rows, as pairs; its rows lie `out_stride` words apart.
  void (*pairs_of_columns)(const Bf16* x, std::int64_t stride, std::int64_t rows, std::int64_t columns,
                           std::int64_t padded_rows, std::int64_t out_stride, std::uint32_t* out);
  /// The transpose itself from its pairs; the rows of both lie `stride` elements apart.
  void (*unpaired)(const std::uint32_t* pairs, std::int64_t stride, std::int64_t pair_rows,
                   std::int64_t columns, Bf16* out);
  /// Rounds rows to bfloat16.
  void (*narrow_rows)(const float* x, std::int64_t stride, std::int64_t rows, std::int64_t columns,
                      Bf16* out);
  /// As attention_gradients of VectorKernels, of a transposed tile; both results have its stride.
  void (*attention_gradients)(const TransposedTile& tile, const Scores& of, Bf16* p_MR, Bf16* gradients_MR);
  /// Of each row of a with the same row of b.
  void (*dots)(const Bf16* a, std::int64_t a_stride, const Bf16* b, std::int64_t b_stride, std::int64_t rows,
               std::int64_t columns, float* out);
};

/// One AdamW step over a range of float32 state; `copy` (bfloat16, may be null) receives the new parameters;
/// `mask` (bytes, may be null) zeroes parameters and moments where it is 0.
using AdamW = void (*)(float* p, const float* g, float* m, float* v, Bf16* copy, const AdamWStep& step,
                       std::int64_t count);
/// Sum of squares of float32 in double; infinity or NaN shows in the result.
using SumOfSquares = double (*)(const float* x, std::int64_t count);

struct VectorTables {
  const char* isa;
  VectorKernels<float> f32;
  VectorKernels<double> f64;
  VectorKernels<Bf16> bf16;
  Bf16TileKernels bf16_tiles;
  AdamW adamw;
  SumOfSquares sum_of_squares;
};

/// out += a^T b in float32 of matrices in pairs that stay in the cache.  For each pair of their rows a has
/// kPairRows words, of which the first `rows` count, and b has kPairColumns.
struct PairProduct {
  const std::uint32_t *a, *b;
  std::int64_t pairs, rows;
  float* out;
  std::int64_t out_row;
};
inline constexpr std::int64_t kPairRows = 8, kPairColumns = 32;

/// What vectors that multiply bfloat16 by pairs compute; sums are float32.
struct PairKernels {
  void (*product)(const PairProduct& product);
};
/// Null where the processor has no AVX-512 BF16.
const PairKernels* pair_kernels();

/// The widest table that this processor runs.
const VectorTables& vector_tables();
/// Every table that this processor runs, for tests.
const VectorTables* const* all_vector_tables();  // ends with nullptr

}  // namespace retort::kernels
