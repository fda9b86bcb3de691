#pragma once
// Products of large matrices by AMX, with sums in float32.
//
// bfloat16 is multiplied as it stands.  float32 is cut into three bfloat16 each, whose six largest products
// are added: no less exact than a product by float32 vectors, however long its sums are
// (docs/decisions/0045-float32-on-amx.md).

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "retort/kernels/cpu/amx_kernels.h"

namespace retort::kernels::cpu {

/// Whether AMX computes products of these sizes, of either type.
bool has_amx_product(std::int64_t inner, std::int64_t rows, std::int64_t columns);

/// Whether it computes a b of these: both of one such type, of dense rows or dense columns.
bool suits_amx_product(const at::Tensor& a_NK, const at::Tensor& b_KM);
/// Whether it adds it to this: float32 of dense rows.
bool suits_amx_sum(const at::Tensor& sum_NM, const at::Tensor& a_NK, const at::Tensor& b_KM);

enum class AmxResult { assigned, added, added_above_the_diagonal };

/// out = a b, or out += a b; above the diagonal, what becomes of the rest is left open.  Each element is
/// added up by one thread in an order that depends on the sizes alone.  Of float32: operands that are not
/// finite give results that are not finite, and numbers above 3.39e38 count as such.  The unit takes what is
/// below 2^-126 for zero: operands below 1e-31 and products below 1e-33 lose digits.  Each thread keeps 1.8
/// MB, and 2.6 MB more after float32 sums of more than 2,560 elements, which no tensor counts.
void amx_product(const at::Tensor& out_NM, const at::Tensor& a_NK, const at::Tensor& b_KM, AmxResult result);
/// The same by these kernels: tests have the arithmetic of AMX for processors without it.
void amx_product(const AmxKernels& by, const at::Tensor& out_NM, const at::Tensor& a_NK,
                 const at::Tensor& b_KM, AmxResult result);

}  // namespace retort::kernels::cpu
