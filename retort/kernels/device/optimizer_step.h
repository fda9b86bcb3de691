#pragma once
// AdamW and the sum of squares composed of libtorch's operations, in pieces.

#include "retort/kernels/types.h"

namespace retort::kernels::device {

void adamw_(at::Tensor p, const at::Tensor& g, at::Tensor m, at::Tensor v, at::Tensor copy,
            const AdamWSettings& settings);
at::Tensor sum_of_squares(const at::Tensor& x);

}  // namespace retort::kernels::device
