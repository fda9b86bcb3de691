#include "retort/io/quote.h"

namespace retort::io {
namespace {

constexpr std::size_t kMaxQuotedBytes = 120;

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
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
  for (const char c : text.substr(0, length)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F)
      out += {'\\', 'x', kDigits[byte >> 4U], kDigits[byte & 15U]};
    else
      out += c;
  }
  return out + (length < text.size() ? "...\"" : "\"");
}

}  // namespace retort::io
