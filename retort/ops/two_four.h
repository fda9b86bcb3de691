#pragma once
// Rows of 2:4 weights without their zeros, for products with single rows.
//
// Such a product is bound by the bytes of the weights. Of four neighbours two are kept, and two bits for each
// say where it stood: 9/16 of the bytes in bfloat16, 17/32 in float32.
//
// Shape legend: K inputs, M outputs, R some of the outputs.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "retort/kernels/types.h"

namespace retort::ops {

using kernels::TwoFourRows;

/// Whether rows of this type are packed on this device: bfloat16 and float32 on a CPU with the vectors of
/// AVX2.
bool packs_two_four(c10::Device device, at::ScalarType type);

/// Bytes of `count` packed rows of `inputs` weights.
std::int64_t two_four_bytes(std::int64_t count, std::int64_t inputs, std::int64_t item_bytes);

/// Packs rows first .. first + count of w, where packs_two_four().  `packed` is undefined where more than two
/// of four neighbours are not zero, or where inputs are no multiple of four.
TwoFourRows two_four_rows(const at::Tensor& w_MK, std::int64_t first, std::int64_t count);

}  // namespace retort::ops
