#pragma once
// Products of matrices, by the library that is fast at them here.
//
// Shape legend: N, K, M: any.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace retort::ops {

/// a b.  Differs from at::mm by rounding only; equal operands give equal bits.  On a CPU whose wide vectors
/// libtorch's BLAS does not use, large products in float32 go to oneDNN (docs/decisions/0028-products.md).
at::Tensor matrix_product(const at::Tensor& a_NK, const at::Tensor& b_KM);

namespace cpu {
/// a b by oneDNN, of float32 matrices on a CPU; undefined where libtorch has none.
at::Tensor onednn_product(const at::Tensor& a_NK, const at::Tensor& b_KM);
}  // namespace cpu

}  // namespace retort::ops
