#pragma once
// Which bytes are text.

#include <cstddef>
#include <string_view>

namespace retort::base {

/// Whether this byte goes on with a character of UTF-8.
constexpr bool is_utf8_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

/// Bytes of the UTF-8 character that a text begins with; 0 where it begins with none.
std::size_t utf8_character_bytes(std::string_view text);

bool is_utf8(std::string_view text);

}  // namespace retort::base
