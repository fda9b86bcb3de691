#pragma once
// The CPU loops of ops/, one table per element type, compiled once per instruction set and chosen when first
// used. Torch-free: the same source is built with wider vector flags, so it must not instantiate anybody
// else's inline code.
//
// Shape legend: N rows (tokens), D hidden, I width of an MLP, V vocabulary, H heads, E head_dim.
// All matrices are dense and row-major.  Each function works on `rows` rows; callers split rows over threads.

#include <cstdint>

namespace retort::ops {

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

/// Which rows of a chunk of logits count, and how much.
struct LossRows {
  const std::int64_t* targets;  ///< -1: the row does not count
  double gradient_scale;        ///< weight of the loss over the number of counted tokens of the step
  double temperature = 1.0;
  bool reverse = false;                ///< KL(student || teacher)
  double temperature_power_scale = 1;  ///< T squared, or 1
};

/// How attention makes its scores; as ops::ScoreRule, with a scale.
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
  /// Returns the sum of -log softmax(s)[target]; adds scale * (softmax(s) - onehot) to grad.  `work_V` is
  /// memory to work in.
  double (*cross_entropy)(const T* logits_NV, const LossRows& spec, std::int64_t rows, std::int64_t vocab,
                          T* grad_NV, C* work_V);
  /// Returns the sum of T^2 KL; adds scale * its gradient to grad.  `work_2V` is memory to work in.
  double (*kl_divergence)(const T* student_NV, const T* teacher_NV, const LossRows& spec, std::int64_t rows,
                          std::int64_t vocab, T* grad_NV, C* work_2V);
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
  /// Writes a vector in the order in which `matrix_vector` and this type's vectors meet.
  void (*arrange)(const C* x, std::int64_t count, C* out);
  /// y = W x for `rows` rows of W; x as `arrange` writes it.
  void (*matrix_vector)(const T* w_MK, const C* x_K, std::int64_t rows, std::int64_t dim, C* y_M);
  /// softmax(scale q k^T) v of one query head, with keys and values that are `stride` elements apart; all
  /// tokens are seen.  `work` has room for tokens + 2 head_dim numbers.
  void (*attend)(const T* q_E, const T* k_ME, const T* v_ME, const Scores& of, std::int64_t tokens,
                 std::int64_t stride, std::int64_t head_dim, C* work, T* out_E);
  /// Softmax of rows of scores times `scale`, in their place and not yet divided by sum_R; lse_R gets the
  /// log-sum-exp.  Row r sees the first `visible + r` of `keys` keys, of these the last `window`; elsewhere
  /// it gets 0.
  void (*attention_softmax)(C* scores_RM, const Scores& of, std::int64_t rows, std::int64_t keys,
                            std::int64_t visible, C* sum_R, C* lse_R);
  /// For matrices that stay in the cache.
  void (*small_product)(const SmallProduct<C>& product);
};

/// One AdamW step over a range of float32 state; `copy` (bfloat16, may be null) receives the new parameters;
/// `mask` (bytes, may be null) zeroes parameters and moments where it is 0.
using AdamW = void (*)(float* p, const float* g, float* m, float* v, Bf16* copy, const std::uint8_t* mask,
                       const AdamWStep& step, std::int64_t count);
/// Sum of squares of float32 in double; infinity or NaN shows in the result.
using SumOfSquares = double (*)(const float* x, std::int64_t count);

struct VectorTables {
  const char* isa;
  VectorKernels<float> f32;
  VectorKernels<double> f64;
  VectorKernels<Bf16> bf16;
  AdamW adamw;
  SumOfSquares sum_of_squares;
};

/// The widest table that this processor runs.
const VectorTables& vector_tables();
/// Every table that this processor runs, for tests.
const VectorTables* const* all_vector_tables();  // ends with nullptr

}  // namespace retort::ops
