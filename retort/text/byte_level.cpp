#include "retort/text/byte_level.h"

#include <array>

#include "retort/text/unicode.h"

namespace retort::text {
namespace {

constexpr int kCharacters = 256 + 68;  // bytes that are not printable are numbered on from 256

constexpr bool printable(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<std::uint16_t, 256> character{};
  std::array<std::int16_t, kCharacters> byte{};
};

constexpr Alphabet make_alphabet() {
  Alphabet a;
  for (auto& byte : a.byte) byte = -1;
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const int character = printable(byte) ? byte : next++;
    a.character[static_cast<std::size_t>(byte)] = static_cast<std::uint16_t>(character);
    a.byte[static_cast<std::size_t>(character)] = static_cast<std::int16_t>(byte);
  }
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
