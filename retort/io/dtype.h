#pragma once
// Element types of tensors in files, with the spelling that safetensors uses.

#include <cstddef>
#include <optional>
#include <string_view>

namespace retort::io {

enum class Dtype { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };

/// Size of one element in bytes.
std::size_t item_bytes(Dtype dtype);
/// The spelling of safetensors: "BF16", "F32", "BOOL", ...
std::string_view name(Dtype dtype);
/// The inverse of name(); empty for a type that is unknown or not supported.
std::optional<Dtype> parse_dtype(std::string_view text);
/// The spelling of a Hugging Face configuration: "bfloat16", "float32", "bool", ...
std::string_view long_name(Dtype dtype);
/// The inverse of long_name().
std::optional<Dtype> parse_long_dtype(std::string_view text);

}  // namespace retort::io
