#pragma once
// The bodies of the operations: cpu/, device/ and cuda/ each fill these tables, and ops/ takes the one of a
// tensor's path.  What a body computes and takes is said of the operation of its name in ops/; arguments are
// checked there.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "retort/kernels/logit_term.h"
#include "retort/kernels/types.h"

namespace retort::kernels {

struct ElementwiseKernels {
  RmsNorm (*rms_norm)(const at::Tensor& x_ND, const at::Tensor& w_D, double eps);
  at::Tensor (*rms_norm_backward)(const at::Tensor& gy_ND, const at::Tensor& x_ND, const at::Tensor& w_D,
                                  const at::Tensor& rstd_N, const at::Tensor& residual_ND, at::Tensor& gw_D);
  void (*apply_rotary)(at::Tensor x_NX, std::int64_t heads, std::int64_t head_dim, const Rotary& rotary,
                       double sign);
  at::Tensor (*swiglu)(const at::Tensor& gate_up_N2I);
  at::Tensor (*geglu)(const at::Tensor& gate_up_N2I);
  GluGrad (*swiglu_backward_)(const at::Tensor& gout_NI, at::Tensor gate_up_N2I);
  GluGrad (*geglu_backward_)(const at::Tensor& gout_NI, at::Tensor gate_up_N2I);
  void (*accumulate)(const at::Tensor& x, at::Tensor sum);
  void (*accumulate_rounded)(const at::Tensor& x_CC, const at::Tensor& unit_C, at::Tensor sum_CC);
};

using AttentionForward = Attention(const at::Tensor& q_NHE, const at::Tensor& k_NKE, const at::Tensor& v_NKE,
                                   const std::vector<std::int64_t>& starts, const ScoreRule& rule);
using AttentionBackward = void(const at::Tensor& gout_NHE, const at::Tensor& q_NHE, const at::Tensor& k_NKE,
                               const at::Tensor& v_NKE, const Attention& forward,
                               const std::vector<std::int64_t>& starts, at::Tensor gq_NHE, at::Tensor gk_NKE,
                               at::Tensor gv_NKE, const ScoreRule& rule);
/// `rule` has a scale.
struct AttentionKernels {
  AttentionForward* attention;
  AttentionBackward* attention_backward;
};

struct LogitLossKernels {
  bool (*has_logit_losses)(std::int64_t item_bytes, std::int64_t terms);
  at::Tensor (*logit_losses)(const at::Tensor& student_NV, const at::Tensor& teacher_NK,
                             const at::Tensor& targets_N, const std::vector<LogitTerm>& terms,
                             at::Tensor grad_NV);
};

struct HiddenLossKernels {
  SquareSums (*square_sums)(const at::Tensor& student_ND, const at::Tensor& teacher_ND);
  void (*scaled_difference)(const at::Tensor& student_ND, const at::Tensor& teacher_ND,
                            const at::Tensor& factor, at::Tensor out_ND);
};

struct ScoreKernels {
  ChunkScores (*score_chunk)(const at::Tensor& student_NV, const at::Tensor& teacher_NV,
                             const at::Tensor& targets_N, std::int64_t num_tokens);
  /// Log-sums of exponentials over all tokens but ids_NK, and the smallest logits of all, both [N, 1].
  std::pair<at::Tensor, at::Tensor> (*sums_without)(const at::Tensor& logits_NV, const at::Tensor& ids_NK);
};

struct OptimizerKernels {
  void (*adamw_)(at::Tensor p, const at::Tensor& g, at::Tensor m, at::Tensor v, at::Tensor copy,
                 const AdamWSettings& settings);
  at::Tensor (*sum_of_squares)(const at::Tensor& x);
};

/// Loops, rows spread over threads; sums are made in fixed pieces of rows.
namespace cpu {
extern const ElementwiseKernels kElementwise;
extern const AttentionKernels kAttention;
extern const LogitLossKernels kLogitLosses;
extern const HiddenLossKernels kHiddenLosses;
extern const ScoreKernels kScores;
extern const OptimizerKernels kOptimizer;
}  // namespace cpu

/// Compositions of libtorch's operations, in pieces of rows.  Losses on logits are composed in loss/.
namespace device {
extern const ElementwiseKernels kElementwise;
extern const AttentionKernels kAttention;
extern const HiddenLossKernels kHiddenLosses;
extern const ScoreKernels kScores;
extern const OptimizerKernels kOptimizer;
}  // namespace device

/// One kernel or two for each operation, or libtorch's fused ones.  None takes float64 or empty
/// tensors.
namespace cuda {
extern const ElementwiseKernels kElementwise;
extern const AttentionKernels kAttention;
extern const LogitLossKernels kLogitLosses;
extern const OptimizerKernels kOptimizer;
at::Tensor relative_errors(const at::Tensor& student_ND, const at::Tensor& teacher_ND,
                           const std::vector<std::int64_t>& bounds, const RelativeError& of,
                           at::Tensor grad_ND);
}  // namespace cuda

/// What serves each path.
template <typename Body>
struct PerPath {
  const Body &cpu, &device, &cuda;
};
inline constexpr PerPath<ElementwiseKernels> kElementwise{cpu::kElementwise, device::kElementwise,
                                                          cuda::kElementwise};
inline constexpr PerPath<AttentionKernels> kAttention{cpu::kAttention, device::kAttention, cuda::kAttention};
inline constexpr PerPath<HiddenLossKernels> kHiddenLosses{cpu::kHiddenLosses, device::kHiddenLosses,
                                                          device::kHiddenLosses};
inline constexpr PerPath<ScoreKernels> kScores{cpu::kScores, device::kScores, device::kScores};
inline constexpr PerPath<OptimizerKernels> kOptimizer{cpu::kOptimizer, device::kOptimizer, cuda::kOptimizer};

}  // namespace retort::kernels
