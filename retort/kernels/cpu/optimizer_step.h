#pragma once
// AdamW in one pass by the loops of vector_kernels.h, and a sum of squares in fixed pieces.

#include "retort/kernels/types.h"

namespace retort::kernels::cpu {

void adamw_(at::Tensor p, const at::Tensor& g, at::Tensor m, at::Tensor v, at::Tensor copy,
            const AdamWSettings& settings);
at::Tensor sum_of_squares(const at::Tensor& x);

}  // namespace retort::kernels::cpu
