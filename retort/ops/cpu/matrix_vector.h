#pragma once
// A matrix times one vector on a CPU, as fast as the matrix is read.

#include <ATen/core/Tensor.h>

namespace retort::ops::cpu {

/// x w^T of one dense row x; w is dense and of x's type, or bfloat16 under float32.
at::Tensor matrix_vector(const at::Tensor& x_1K, const at::Tensor& w_MK);

}  // namespace retort::ops::cpu
