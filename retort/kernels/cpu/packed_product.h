#pragma once
// Products a^T b added in float32: gradients of weights, and sums of x^T x.
//
// Both matrices are read along their rows, so blocks of them are copied into the order of the registers'
// tiles and nothing has to be transposed.  In float32, oneDNN transposes a copy of `a`; MKL leaves AVX-512
// out on processors of other makers than Intel.  In bfloat16, libtorch rounds the product before it can be
// added.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace retort::kernels::cpu {

/// Whether products of bfloat16 matrices of these sizes are: on a processor that multiplies pairs of them by
/// vectors, where AMX does not compute them (amx_product.h).
bool packs_bf16(std::int64_t inner, std::int64_t rows, std::int64_t columns);

/// Whether a product of these is faster here than libtorch's.
bool suits_packed_product(const at::Tensor& sum_MK, const at::Tensor& a_NM, const at::Tensor& b_NK);

/// sum += a^T b, of float32, or of bfloat16 where packs_bf16().  Dense rows.  Each element is added up by one
/// thread in an order that depends on the inner size alone.
void add_packed_product(at::Tensor sum_MK, const at::Tensor& a_NM, const at::Tensor& b_NK);

/// sum += x^T x, of any floating type, on the diagonal and above it; what becomes of the rest is left open.
void add_upper_product(at::Tensor sum_CC, const at::Tensor& x_NC);
/// Copies what is above the diagonal to its other side.
void mirror_upper(at::Tensor x_CC);

}  // namespace retort::kernels::cpu
