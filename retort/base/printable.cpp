#include "retort/base/printable.h"

#include <cstdint>

#include "retort/base/utf8.h"

namespace retort::base {
namespace {

constexpr std::size_t kMaxQuotedBytes = 120;
constexpr char kDigits[] = "0123456789abcdef";

std::uint32_t code_point(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1) return first;
  std::uint32_t code = first & (0xFFU >> (character.size() + 1));
  for (const char next : character.substr(1)) code = code << 6U | (static_cast<unsigned char>(next) & 0x3FU);
  return code;
}

bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0);
}

bool breaks_lines(std::uint32_t code) {
  return code == 0x2028 || code == 0x2029;
}

// What follows is shown in another order than it stands, until the end of the line.
bool turns_direction(std::uint32_t code) {
  return (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

std::string byte_in_digits(unsigned char byte) {
  return {'\\', 'x', kDigits[byte >> 4U], kDigits[byte & 15U]};
}

// JSON and YAML understand \u too, so that their texts keep their meaning.
std::string character_in_digits(std::uint32_t code) {
  std::string text = "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) text += kDigits[(code >> static_cast<unsigned>(shift)) & 15U];
  return text;
}

bool stays(std::string_view text, Newlines newlines) {
  const char first = text.front();
  if (newlines == Newlines::all) return first == '\n' || first == '\t';
  return newlines == Newlines::indented && text.starts_with("\n  ");
}

}  // namespace

std::size_t printable_bytes(std::string_view text) {
  const std::size_t bytes = utf8_character_bytes(text);
  if (bytes == 0) return 0;
  const auto code = code_point(text.substr(0, bytes));
  return is_control(code) || breaks_lines(code) || turns_direction(code) ? 0 : bytes;
}

std::string printable(std::string_view text, Newlines stay) {
  std::string out;
  out.reserve(text.size());
  for (; !text.empty();) {
    std::size_t bytes = printable_bytes(text);
    if (bytes > 0) {
      out += text.substr(0, bytes);
    } else if (stays(text, stay)) {
      out += text[bytes++];
    } else {
      bytes = utf8_character_bytes(text);
      const auto byte = static_cast<unsigned char>(text.front());
      out += bytes == 0 || byte < 0x20 ? byte_in_digits(byte)
                                       : character_in_digits(code_point(text.substr(0, bytes)));
      if (bytes == 0) bytes = 1;
    }
    text.remove_prefix(bytes);
  }
  return out;
}

std::string quote(std::string_view text) {
  std::size_t length = text.size();
  if (length > kMaxQuotedBytes) {
    length = kMaxQuotedBytes;
    while (length > 0 && is_utf8_continuation(text[length])) --length;
  }
  return '"' + printable(text.substr(0, length)) + (length < text.size() ? "...\"" : "\"");
}

std::string as_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t bytes = utf8_character_bytes(text);
    if (bytes > 0)
      out += text.substr(0, bytes);
    else
      out += byte_in_digits(static_cast<unsigned char>(text.front()));
    text.remove_prefix(bytes > 0 ? bytes : 1);
  }
  return out;
}

}  // namespace retort::base
