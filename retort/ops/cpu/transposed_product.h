#pragma once
// The gradient of a linear layer's weights with AMX.  For the vectors of AVX-512 BF16 see packed_product.h.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace retort::ops::cpu {

/// Whether AMX computes products of bfloat16 matrices of these sizes: `inner` rows, even numbers of rows and
/// whole steps of columns of the sum.
bool has_transposed_product(std::int64_t inner, std::int64_t rows, std::int64_t columns);

/// Whether add_transposed_product is computed so: has_transposed_product(), of dense rows, added to dense
/// float32.
bool suits_transposed_product(const at::Tensor& sum_MK, const at::Tensor& a_NM, const at::Tensor& b_NK);

/// sum += a^T b, in float32: the product is never rounded to bfloat16.  Each element is added up by one
/// thread, so the number of threads changes no bit.
void add_transposed_product(at::Tensor sum_MK, const at::Tensor& a_NM, const at::Tensor& b_NK);

/// Bytes of tensors that it holds for `inner` rows of so many columns.
std::int64_t transposed_product_bytes(std::int64_t inner, std::int64_t columns);

}  // namespace retort::ops::cpu
