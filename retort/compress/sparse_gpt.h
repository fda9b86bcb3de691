#pragma once
// SparseGPT: makes one weight matrix n:m sparse along its inputs and changes the weights that stay so that
// the layer's output on calibration text changes least.  Pure functions of weight and Hessian. Source:
// Frantar & Alistarh, SparseGPT (2023), algorithm 1; the saliency w^2 / U_kk^2 is theirs.
//
// Shape legend: R rows, C columns.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "retort/calibrate/hessian.h"
#include "retort/compress/options.h"
#include "retort/model/sparsity.h"

namespace retort::compress {

struct SweepOptions {
  model::Pattern pattern;
  std::int64_t block_size =
      128;  ///< columns between two updates of all later columns; does not change the result
  double dampening_fraction = 0.01;  ///< share of the mean diagonal where the ladder begins
  MaskChoice mask = MaskChoice::saliency;
};

/// What becomes of a layer's output, 1/2 tr(. H .^T): of parts of its rows it adds up.
struct OutputError {
  double change = 0;  ///< of W - What
  double whole = 0;   ///< of W

  /// ||(W - What) X|| / ||W X||; 0 for a layer without output.
  double relative() const;
};

struct SparseResult {
  at::Tensor weight_RC;  ///< has the type of the weight that came in
  at::Tensor mask_RC;  ///< bool, true where the sweep kept a weight; a dead column is kept by the mask and 0
  double loss = 0;     ///< sum e^2 / 2 over all removed weights; without a sweep 1/2 tr(dW H dW^T)
  double identity_residual =
      0;  ///< relative difference of loss and 1/2 tr(dW (H + lambda I) dW^T), which are equal
  double dampening_fraction = 0;  ///< what the factorisation took
};

/// Arithmetic in the Hessian's type.  Throws UsageError: columns that are no multiple of the group, a block
/// size that is none, or a pattern with too many sets for the exact choice; ValidationError naming `who`: no
/// factorisation, or a broken loss identity (1e-8 in float64, 1e-2 in float32).
SparseResult sparsify_weight(const at::Tensor& weight_RC, const at::Tensor& hessian_CC,
                             const SweepOptions& options, const std::string& who);

/// Does the same with a factor that several layers of one input share.
SparseResult sparsify_weight(const at::Tensor& weight_RC, const at::Tensor& hessian_CC,
                             const calibrate::HessianFactor& factor, const SweepOptions& options,
                             const std::string& who);

/// Applies a method without update, for comparison: wanda or magnitude; of equals the first goes.
/// No factorisation, so any amount of text will do.  Throws UsageError as above.
SparseResult mask_weight(const at::Tensor& weight_RC, const at::Tensor& hessian_CC, SparseMethod method,
                         const model::Pattern& pattern, const std::string& who);

/// Of all rows given, over the text of the Hessian.
OutputError output_error(const at::Tensor& weight_RC, const at::Tensor& sparse_RC,
                         const at::Tensor& hessian_CC);

}  // namespace retort::compress
