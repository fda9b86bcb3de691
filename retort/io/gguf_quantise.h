#pragma once
// Values of a tensor as blocks of a GGUF file, the inverse of dequantise().
//
// A scale is the simplest that covers its block in types of 32 values, and one that is searched for in types
// of 256 values.  Formulas: gguf-py's quants.py and llama.cpp's ggml-quants.c.

#include <cstddef>
#include <span>

#include "retort/io/gguf_blocks.h"

namespace retort::io {

/// Writes `values`, whole blocks of `type`, to `blocks`, which has a place for each block.
///
/// F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0 are bit for bit those of gguf-py 0.19.0 on x86.  Q4_K, Q5_K and
/// Q6_K are those of llama.cpp's ggml_quantize_chunk() without an importance matrix, compiled without fused
/// products (-ffp-contract=off, or for x86-64 without more instructions, as it usually is).  One thing is our
/// own: where zeros of both signs are the least values of a block of Q4_1 or Q5_1, the first says the sign.
/// With NumPy it depends on the machine.
///
/// A scale too small for a half is rounded, down to zero.  Throws ModelError for a value that is not finite,
/// or is too large for the type or for the half that its scale is.  The message says its place; the caller
/// names the tensor.  Throws UsageError for a type that is only read (Q2_K, Q3_K).
void quantise(GgmlType type, std::span<const float> values, std::span<std::byte> blocks);

}  // namespace retort::io
