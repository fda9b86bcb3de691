#pragma once
// Products of matrices, by the library that is fast at them here.
//
// Shape legend: N, K, M: any.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace retort::ops {

/// a b.  Finite results differ from at::mm by rounding only; equal operands give equal bits.  On a CPU with
/// AMX, large products in float32 are made of bfloat16 ones: what is not finite, above 3.39e38 or below 1e-31
/// is another matter there (cpu/amx_product.h).  On one whose wide vectors libtorch's BLAS does not use they
/// go to oneDNN (docs/decisions/0028-products.md).
at::Tensor matrix_product(const at::Tensor& a_NK, const at::Tensor& b_KM);

/// How products of bfloat16 are made on a CPU.
enum class Bf16Products {
  whole,   ///< at once
  by_row,  ///< libtorch's keep a float32 for each number of their result: a few rows at a time
  widened  ///< libtorch's would take a plain loop: pieces in float32 are faster
};
/// By row with AVX-512 and without its instructions for bfloat16; widened on an x86 without AVX-512.
Bf16Products bf16_products();
/// What a product holds beside its result where it is not made whole; by row, at least one row in float32.
inline constexpr std::int64_t kWidenedBytes = std::int64_t{1} << 20;

/// x w^T: a linear layer, whose weights have a row for each output.
at::Tensor linear(const at::Tensor& x_NK, const at::Tensor& w_MK);

/// sum += a^T b, accumulated in the sum's type: the gradient of a linear layer's weights.  A product of
/// bfloat16 is not rounded before it is added, but on an accelerator without kernels of Retort's own.
void add_transposed_product(at::Tensor sum_MK, const at::Tensor& a_NM, const at::Tensor& b_NK);

/// sum += x^T x, whose product is made in the type of x.  On a CPU one half of it is computed, the other is
/// its mirror image.  The sum may be of a wider type, and is symmetric before.
void add_gram_product(at::Tensor sum_CC, const at::Tensor& x_NC);

}  // namespace retort::ops
