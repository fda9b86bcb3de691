#pragma once
// What operations take and give: the interfaces in ops/ and all bodies in kernels/ share these types.
//
// Shape legend: N tokens, H query heads, K key/value heads, E head_dim, D hidden, I width of an MLP.

#include <ATen/core/Tensor.h>

#include <cmath>
#include <cstdint>
#include <span>

namespace retort::kernels {

/// The type in which statistics of x are kept.
inline at::ScalarType statistics_type(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

// ---- Attention

/// How the score of a query and a key comes about, and which keys a query sees.
struct ScoreRule {
  double scale = 0;         ///< of q k; 0: 1 / sqrt(E)
  double softcap = 0;       ///< scores become softcap * tanh(score / softcap); 0: they stay
  std::int64_t window = 0;  ///< a token sees itself and the window - 1 tokens before it; 0: all of them

  /// With the scale of heads of this width, where none is set.
  ScoreRule of_heads(std::int64_t head_dim) const {
    auto rule = *this;
    if (rule.scale == 0) rule.scale = 1.0 / std::sqrt(static_cast<double>(head_dim));
    return rule;
  }
};

struct Attention {
  at::Tensor out_NHE;
  at::Tensor lse_HN;  ///< log of the sum of exponentials of the scaled scores, float32 (float64)
};

inline constexpr std::int64_t kPageTokens = 32;

/// Keys and values of many texts in P pages of T tokens.
struct KeyValuePages {
  at::Tensor k_PTKE, v_PTKE;
};

/// Where a text lies: token t in page `pages[t / kPageTokens]`, at place t % kPageTokens.
struct PagedText {
  std::span<const std::int32_t> pages;
  std::int64_t tokens = 0;  ///< up to the one that asks, which counts
};

// ---- Norms, rotation and gates

struct RmsNorm {
  at::Tensor y_ND;
  at::Tensor rstd_N;  ///< 1 / rms in float32 (float64 for float64)
};

/// Tables of the rotary embedding for absolute positions.
struct Rotary {
  at::Tensor cos_NE2;  ///< [N, R/2] float32, where the first R of a head's E channels are turned
  at::Tensor sin_NE2;
};

struct GluGrad {
  at::Tensor gate_up_N2I;
  at::Tensor out_NI;  ///< activation(gate) * up, computed again for the gradient of the down projection
};

/// A float64 plus so many units, less them, is a multiple of the unit: the next one.
inline constexpr double kRoundingUnits = 0x1.8p52;

// ---- Losses and scores

struct SquareSums {
  at::Tensor error;    ///< sum of (student - teacher)^2
  at::Tensor teacher;  ///< sum of teacher^2
};

/// What becomes of the relative error of a segment: the mean square of student - teacher over that of the
/// teacher and eps.
struct RelativeError {
  double eps = 0;
  double blocks = 1;       ///< that a loss compares: its value is a mean over them
  double step_tokens = 1;  ///< that the gradient is of a mean over, of the whole step
  double weight = 1;       ///< of the gradient
};

/// What evaluation needs of each row of a chunk.
struct ChunkScores {
  at::Tensor nll_N;          ///< float32, or float64 of float64 logits; 0 where a row does not count
  at::Tensor kl_N;           ///< KL(teacher || student) at temperature 1; undefined without a teacher
  at::Tensor agreed_N;       ///< bool: both find the same token most likely; undefined without a teacher
  at::Tensor top1_N;         ///< the student's most likely token
  at::Tensor confidence_N;   ///< the probability of that token, among all columns
  at::Tensor teacher_nll_N;  ///< of the teacher itself
  at::Tensor teacher_top1_N;
};

// ---- The optimizer

struct AdamWSettings {
  double lr, beta1, beta2, eps, weight_decay;
  std::int64_t step;          ///< from 1
  double gradient_scale = 1;  ///< multiplies the gradient: clipping
};

}  // namespace retort::kernels
