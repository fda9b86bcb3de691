#pragma once
// The types of tensors in GGUF files.  Most of them are quantised: a row is a sequence of blocks, and a block
// has scales and small integers for 32 or 256 values.
// Layouts: https://github.com/ggml-org/ggml, ggml-common.h; values as gguf-py's quants.py computes them.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace retort::io {

enum class GgmlType { f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, q3_k, q4_k, q5_k, q6_k };

struct GgmlBlock {
  std::size_t values = 1;  ///< in a block
  std::size_t bytes = 4;   ///< of a block
};

/// The type with this number in files; empty for one that is not read.
std::optional<GgmlType> ggml_type(std::uint32_t number);
/// Its number in files.
std::uint32_t ggml_number(GgmlType type);
/// What ggml calls the type with this number, whether it is read or not; the number where ggml has no name.
std::string ggml_name(std::uint32_t number);
/// "F32", "Q4_1", ...
std::string_view name(GgmlType type);
GgmlBlock block_of(GgmlType type);
/// Whether values are stored as blocks of integers with scales.
bool is_quantised(GgmlType type);

/// The values of whole blocks, bit for bit those of gguf-py.  `values` has as many places as the blocks have
/// values.
void dequantise(GgmlType type, std::span<const std::byte> blocks, std::span<float> values);

/// The value of an IEEE half.
float half_to_float(std::uint16_t half);
/// The nearest IEEE half, of two the even one; from 65520 on an infinite one.
std::uint16_t float_to_half(float value);

}  // namespace retort::io
