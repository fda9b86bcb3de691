#pragma once
// A matrix times one vector on a CPU, as fast as the matrix is read.

#include <ATen/core/Tensor.h>

#include <span>

#include "retort/kernels/types.h"

namespace retort::kernels::cpu {

/// x w^T of one dense row x; w is dense and of x's type, or bfloat16 under float32.  `packed`, in the order
/// of its rows and of x's type, is read in place of those of w.
at::Tensor matrix_vector(const at::Tensor& x_1K, const at::Tensor& w_MK, std::span<const TwoFourRows> packed);

}  // namespace retort::kernels::cpu
