#pragma once
// Products of small bfloat16 matrices by a processor's matrix unit, through libtorch.  A unit is what
// multiplies pairs of bfloat16: AMX, or the vectors of AVX-512 BF16.

#include <cstdint>

#include "retort/kernels/cpu/vector_kernels.h"

namespace retort::kernels::cpu {

/// Whether attention of bfloat16 heads of this width is computed on it.
bool suits_matrix_unit(std::int64_t head_dim);

/// Rows and widths of products are multiples of it: each shape is compiled, so few may occur.
inline constexpr std::int64_t kUnitStep = 32;
constexpr std::int64_t rounded_up_for_unit(std::int64_t count) {
  return (count + kUnitStep - 1) / kUnitStep * kUnitStep;
}

/// What its operands are made by.
inline const Bf16TileKernels& unit_kernels() {
  return vector_tables().bf16_tiles;
}

/// out = a b, or out += a b, with sums in float32.  Rows of a and out lie a_row and out_row elements apart;
/// b is in pairs of rows, b_row words apart.  `inner` is even.
struct UnitProduct {
  const Bf16* a;
  std::int64_t a_row;
  const std::uint32_t* b;
  std::int64_t b_row;
  float* out;
  std::int64_t out_row;
  std::int64_t rows, inner, columns;
  bool add;
};
void unit_product(const UnitProduct& product);

/// Leaves the unit of this thread as others expect it.
void release_matrix_unit();

}  // namespace retort::kernels::cpu
