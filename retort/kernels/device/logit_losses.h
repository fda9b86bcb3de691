#pragma once
// Losses on hidden states composed of libtorch's operations, with temporaries of a piece of rows.

#include "retort/kernels/types.h"

namespace retort::kernels::device {

SquareSums square_sums(const at::Tensor& student_ND, const at::Tensor& teacher_ND);
void scaled_difference(const at::Tensor& student_ND, const at::Tensor& teacher_ND, const at::Tensor& factor,
                       at::Tensor out_ND);

}  // namespace retort::kernels::device
