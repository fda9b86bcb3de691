#pragma once
// Products of float32 and of bfloat16 by AMX, a processor's unit for products of small bfloat16 matrices.
//
// An operand is packed in panels of 32 lines: rows of a, or columns of b.  For each 32 inner elements a panel
// has two squares of 16 lines, and for float32 three times two: its parts in bfloat16
// (docs/decisions/0045-float32-on-amx.md).

#include <cstdint>

#include "retort/kernels/cpu/vector_kernels.h"

namespace retort::kernels {

/// Rows of a register, and words of a row; two elements of bfloat16 are in each word.
inline constexpr std::int64_t kAmxSide = 16, kAmxWordsOfSquare = kAmxSide * kAmxSide;
/// Lines of a panel, and inner elements of a square.
inline constexpr std::int64_t kAmxLines = 2 * kAmxSide, kAmxInner = 2 * kAmxSide;
constexpr std::int64_t amx_padded(std::int64_t count) {
  return (count + kAmxLines - 1) / kAmxLines * kAmxLines;
}
/// Words of packed operands, for each part.
constexpr std::int64_t amx_words(std::int64_t lines, std::int64_t inner) {
  return amx_padded(lines) * amx_padded(inner) / 2;
}

/// A matrix, by the elements from one line to the next and from one inner element to the next: one of them
/// is 1.
template <typename T>
struct AmxOperand {
  const T* x;
  std::int64_t line_step, inner_step;
};

/// out = a b, or out += a b, in float32, of a panel of each; 32 by 32 elements, rows `out_row` apart.  What
/// is added is summed apart, but of bfloat16.
struct AmxProduct {
  const std::uint32_t *a, *b;
  bool b_in_one_part;  ///< as pack() says of it
  std::int64_t steps;  ///< of kAmxInner inner elements
  float* out;
  std::int64_t out_row;
  bool add;
};

template <typename T>
struct AmxTypeKernels {
  std::int64_t parts;
  /// Packs so many lines and inner elements, with zeros up to whole panels and steps; `out` is aligned to 64
  /// bytes.  `lines_are_columns`: of b.  Returns whether one part holds all of them: float32 numbers that are
  /// bfloat16 ones, as weights of most published models are.
  bool (*pack)(const AmxOperand<T>& of, std::int64_t lines, std::int64_t inner, bool lines_are_columns,
               std::uint32_t* out);
  void (*multiply)(const AmxProduct& product);
};

struct AmxKernels {
  void (*configure)();  ///< this thread's registers, before a product
  void (*release)();    ///< leaves them as others expect them
  AmxTypeKernels<float> f32;
  AmxTypeKernels<Bf16> bf16;
};
/// Null where the processor has no AMX, or the system does not let this process use it.
const AmxKernels* amx_kernels();

}  // namespace retort::kernels
