#pragma once
// UTF-8 and character classes.  Inside the layer text is always valid UTF-8: to_valid_utf8 makes it so at the
// door.

#include <cstdint>
#include <string>
#include <string_view>

namespace retort::text {

/// Bits of a character's class; the order is that of tools/make_unicode_tables.py.
enum CharClass : std::uint16_t {
  kLetter = 1,         ///< \p{L}
  kNumber = 2,         ///< \p{N}
  kMark = 4,           ///< \p{M}
  kUpperLike = 8,      ///< Lu, Lt, Lm, Lo, M
  kLowerLike = 16,     ///< Ll, Lm, Lo, M
  kSpace = 32,         ///< \s
  kNumeric = 64,       ///< what the Digits pre-tokenizer takes for a digit
  kWord = 128,         ///< \w
  kPunctuation = 256,  ///< \p{P}
  kSymbol = 512,       ///< \p{S}
};

struct Character {
  char32_t code = 0;
  std::uint32_t size = 0;  ///< bytes
};

/// The character at `at`, which must be the start of a character of valid UTF-8.
inline Character read_character(const char* at) {
  const auto byte = [at](int i) { return static_cast<char32_t>(static_cast<unsigned char>(at[i])); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

/// The start of the character that ends before `at`, inside valid UTF-8 text.
inline const char* previous_character(const char* at) {
  do --at;
  while ((static_cast<unsigned char>(*at) & 0xC0) == 0x80);
  return at;
}

/// Class bits of every code point, indexed by code point.
const std::uint16_t* character_classes();

void append_utf8(std::string& out, char32_t code);

/// Length of the longest valid UTF-8 prefix, in bytes.
std::size_t valid_utf8_prefix(std::string_view bytes);

/// `bytes` with every maximal invalid part replaced by U+FFFD, the practice that Unicode recommends
/// (chapter 3.9) and Rust's from_utf8_lossy follows.  Valid text is returned as it is; otherwise `storage`
/// holds the result.
std::string_view to_valid_utf8(std::string_view bytes, std::string& storage);

/// Normalization form C of valid UTF-8.
std::string to_nfc(std::string_view text);

}  // namespace retort::text
