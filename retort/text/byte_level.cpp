#include "retort/text/byte_level.h"

#include <array>

#include "retort/io/byte_symbols.h"
#include "retort/text/unicode.h"

namespace retort::text {
namespace {

constexpr int kCharacters = 256 + 68;

struct Alphabet {
  std::array<std::uint16_t, 256> character = io::byte_symbols();
  std::array<std::int16_t, kCharacters> byte{};
};

constexpr Alphabet make_alphabet() {
  Alphabet a;
  for (auto& byte : a.byte) byte = -1;
  for (std::size_t byte = 0; byte < 256; ++byte) a.byte[a.character[byte]] = static_cast<std::int16_t>(byte);
  return a;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

char32_t byte_character(std::uint8_t byte) {
  return kAlphabet.character[byte];
}

std::optional<std::string> token_bytes(std::string_view token) {
  std::string bytes;
  for (const char* at = token.data(); at != token.data() + token.size();) {
    const Character character = read_character(at);
    if (character.code >= kCharacters || kAlphabet.byte[character.code] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kAlphabet.byte[character.code]));
    at += character.size;
  }
  return bytes;
}

}  // namespace retort::text
