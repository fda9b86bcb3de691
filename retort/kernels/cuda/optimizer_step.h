#pragma once
// One update in one kernel, and the norm of a gradient in one and a sum; see ops/optimizer_step.h.

#include "retort/kernels/types.h"

namespace retort::kernels::cuda {

void adamw_(at::Tensor p, const at::Tensor& g, at::Tensor m, at::Tensor v, at::Tensor copy,
            const AdamWSettings& settings);
at::Tensor sum_of_squares(const at::Tensor& x);

}  // namespace retort::kernels::cuda
