#pragma once
// Whether bytes are text, told from the first of them as they are after decompression.

#include <cstddef>
#include <string>
#include <string_view>

namespace retort::io {

/// As many first bytes of a file as why_not_text() wants to see; of a shorter file all.
inline constexpr std::size_t kTextProbeBytes = std::size_t{1} << 16;

/// The name of a format that is not text, for example "a Parquet file"; empty where none is known.
std::string binary_format(std::string_view first_bytes);

/// Why these bytes are not text: binary_format(), or a NUL byte; empty for text, which may be in any encoding
/// that has no NUL byte.
std::string why_not_text(std::string_view first_bytes);

}  // namespace retort::io
