#pragma once
// The byte-level alphabet of GPT-2: every byte stands for one printable character, so that tokens are
// readable strings.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace retort::text {

/// The character that stands for `byte`.
char32_t byte_character(std::uint8_t byte);

/// The bytes that `token` stands for; nothing if one of its characters stands for no byte.
std::optional<std::string> token_bytes(std::string_view token);

}  // namespace retort::text
