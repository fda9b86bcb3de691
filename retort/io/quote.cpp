#include "retort/io/quote.h"

namespace retort::io {
namespace {

constexpr std::size_t kMaxQuotedBytes = 120;

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

// Bytes of the UTF-8 character that the text begins with; 0 where it begins with none.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const std::size_t bytes = byte(0) >= 0xC2 && byte(0) < 0xE0   ? 2
                            : byte(0) >= 0xE0 && byte(0) < 0xF0 ? 3
                            : byte(0) >= 0xF0 && byte(0) < 0xF5 ? 4
                                                                : 0;
  if (bytes == 0 || text.size() < bytes) return 0;
  for (std::size_t i = 1; i < bytes; ++i)
    if (!is_continuation(text[i])) return 0;
  // Written longer than need be, halves of pairs, and beyond the last character.
  const bool sound = (byte(0) != 0xE0 || byte(1) >= 0xA0) && (byte(0) != 0xED || byte(1) < 0xA0) &&
                     (byte(0) != 0xF0 || byte(1) >= 0x90) && (byte(0) != 0xF4 || byte(1) < 0x90);
  return sound ? bytes : 0;
}

}  // namespace

std::string quote(std::string_view text) {
  std::size_t length = text.size();
  if (length > kMaxQuotedBytes) {
    length = kMaxQuotedBytes;
    while (length > 0 && is_continuation(text[length])) --length;
  }
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "\"";
  for (std::string_view rest = text.substr(0, length); !rest.empty();) {
    const auto byte = static_cast<unsigned char>(rest.front());
    const std::size_t bytes = character_bytes(rest);
    if (byte < 0x20 || byte == 0x7F || bytes == 0)
      out += {'\\', 'x', kDigits[byte >> 4U], kDigits[byte & 15U]};
    else
      out += rest.substr(0, bytes);
    rest.remove_prefix(bytes > 0 ? bytes : 1);
  }
  return out + (length < text.size() ? "...\"" : "\"");
}

}  // namespace retort::io
