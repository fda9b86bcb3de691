#pragma once
// The best weights for a mask that is chosen: least squares for every row, min ||(W - What) X|| with the
// mask's zeros.
//
// Shape legend: R rows, C columns.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace retort::compress {

struct PolishOptions {
  std::int64_t iterations = 200;  ///< upper limit
  /// A row ends when its gradient has shrunk to this part of its length.  The error is then above the least
  /// by about the square of it.
  double tolerance = 1e-2;
};

struct Polished {
  at::Tensor weight_RC;         ///< weights in the type of `sparse_RC`
  std::int64_t iterations = 0;  ///< number for the row that took most
};

/// Conjugate gradients on all rows at once, from `sparse_RC`, preconditioned by the diagonal of H; each row
/// solves H_KK w = (H W_r^T)_K for its own kept columns K.  Products of R x C with C x C only, so wide layers
/// cost iterations, not factorisations.  Arithmetic in the Hessian's type.  A row's result does not depend on
/// the others but by the rounding of products of another shape, so rows may be split.  The result errs on the
/// calibration text at most as much as `sparse_RC`; whether it does on other text has to be looked at, that
/// is what a held-out Hessian is for.
Polished least_squares_polish(const at::Tensor& weight_RC, const at::Tensor& sparse_RC,
                              const at::Tensor& mask_RC, const at::Tensor& hessian_CC,
                              const PolishOptions& options = {});

}  // namespace retort::compress
