#pragma once
// Products with weights in panels: of one row at the rate at which the weights are read, of many at that of
// the multipliers, and each row with the same bits.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace retort::kernels::cpu {

/// Numbers in the panels of M x K weights; the last panel is filled up.
std::int64_t panel_elements(std::int64_t outputs, std::int64_t inputs);

/// Whether it is float32 and holds bfloat16 numbers only.
bool holds_bfloat16_numbers(const at::Tensor& x);

/// Panels [M / 32, K, 32] of weights [M, K] in their type, or in bfloat16 where that loses nothing.
at::Tensor packed_panels(const at::Tensor& w_MK);

/// x w^T, [N, M] in the type of x.
at::Tensor panel_product(const at::Tensor& x_NK, const at::Tensor& panels, std::int64_t outputs);

}  // namespace retort::kernels::cpu
