#pragma once
// Text out of strangers' files, made fit for a one-line message.

#include <string>
#include <string_view>

namespace retort::io {

/// The text in double quotes, control characters and bytes that are not UTF-8 as \xNN, cut after 120 bytes at
/// the border of a character.
std::string quote(std::string_view text);

}  // namespace retort::io
