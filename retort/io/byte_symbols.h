#pragma once
// The byte-level alphabet of GPT-2: every byte stands for one printable character, so that tokens are
// readable strings.

#include <array>
#include <cstdint>

namespace retort::io {

/// The character of each byte; those that are not printable are numbered on from 256.
constexpr std::array<std::uint16_t, 256> byte_symbols() {
  std::array<std::uint16_t, 256> symbols{};
  std::uint16_t next = 256;
  for (std::uint16_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    symbols[byte] = printable ? byte : next++;
  }
  return symbols;
}

}  // namespace retort::io
