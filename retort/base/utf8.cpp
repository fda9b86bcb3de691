#include "retort/base/utf8.h"

namespace retort::base {

std::size_t utf8_character_bytes(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const std::size_t bytes = byte(0) >= 0xC2 && byte(0) < 0xE0   ? 2
                            : byte(0) >= 0xE0 && byte(0) < 0xF0 ? 3
                            : byte(0) >= 0xF0 && byte(0) < 0xF5 ? 4
                                                                : 0;
  if (bytes == 0 || text.size() < bytes) return 0;
  for (std::size_t i = 1; i < bytes; ++i)
    if (!is_utf8_continuation(text[i])) return 0;
  // Written longer than need be, halves of pairs, and beyond the last character.
  const bool sound = (byte(0) != 0xE0 || byte(1) >= 0xA0) && (byte(0) != 0xED || byte(1) < 0xA0) &&
                     (byte(0) != 0xF0 || byte(1) >= 0x90) && (byte(0) != 0xF4 || byte(1) < 0x90);
  return sound ? bytes : 0;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto bytes = utf8_character_bytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace retort::base
