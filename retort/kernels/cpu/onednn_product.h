#pragma once
// Products of float32 matrices by oneDNN, where it is faster than libtorch's BLAS
// (docs/decisions/0028-products.md).

#include <ATen/core/Tensor.h>

namespace retort::kernels::cpu {

/// Whether a b of these is: large and of float32, on a processor whose wide vectors that BLAS does not use.
bool suits_onednn_product(const at::Tensor& a_NK, const at::Tensor& b_KM);

/// a b, of float32 matrices on a CPU; undefined where libtorch has no oneDNN.
at::Tensor onednn_product(const at::Tensor& a_NK, const at::Tensor& b_KM);

}  // namespace retort::kernels::cpu
