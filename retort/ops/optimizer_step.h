#pragma once
// The element-wise part of the optimizer, over flat float32 ranges.

#include <ATen/core/Tensor.h>

#include "retort/kernels/types.h"

namespace retort::ops {

using kernels::AdamWSettings;

/// One AdamW step on float32 ranges of equal length, in one pass.
/// copy: bfloat16 range that receives the new parameters, or undefined.  Throws InternalError for a range of
/// another type or length.
/// Source: Loshchilov and Hutter 2019, algorithm 2.
void adamw_(at::Tensor p, const at::Tensor& g, at::Tensor m, at::Tensor v, at::Tensor copy,
            const AdamWSettings& settings);

/// Sum of squares of a float32 range, a float64 scalar on its device, which is not waited for; in fixed
/// pieces. NaN and infinity show in the result.
at::Tensor sum_of_squares(const at::Tensor& x);

}  // namespace retort::ops
