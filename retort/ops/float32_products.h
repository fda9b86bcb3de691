#pragma once
// Who multiplies large matrices of float32 on a CPU: AMX, which makes such a product of bfloat16 ones, or
// vectors. Which is faster depends on the processor, and results have other bits
// (docs/decisions/0045-float32-on-amx.md).

#include "retort/base/words.h"

namespace retort::ops {

enum class Float32Products { vectors, amx };
constexpr auto words_of(Float32Products) {
  return base::words<Float32Products::amx>("vectors", "amx");
}

/// Whether this process can multiply float32 by AMX.
bool has_float32_amx();

/// Who does: AMX where there is one, until set_float32_products() says otherwise.
Float32Products float32_products();
/// Of all products that begin from here on, on any thread; without AMX they stay with vectors.
void set_float32_products(Float32Products by);

}  // namespace retort::ops
