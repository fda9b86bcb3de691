#pragma once
// Text out of strangers' files, made fit for a terminal: nothing in it moves the cursor, sets colours or a
// title, turns the direction of reading, or reads as a line of ours.

#include <cstddef>
#include <string>
#include <string_view>

namespace retort::base {

/// Bytes of the character that a text begins with, if it is UTF-8 and a terminal only shows it; else 0, also
/// for newlines and tabs.  Allocates nothing, so a signal handler may call it.
std::size_t printable_bytes(std::string_view text);

/// Which newlines of a text stay.
enum class Newlines {
  none,
  indented,  ///< those before two spaces: rows of a table below a sentence
  all        ///< and tabs: text that is printed as text
};

/// The text with all else that is not printable as \xNN, a byte, or \uNNNN, a character.
std::string printable(std::string_view text, Newlines stay = Newlines::none);

/// The printable text in double quotes, cut after 120 bytes at the border of a character.
std::string quote(std::string_view text);

/// The text with bytes that are not UTF-8 as \xNN.  JSON holds it, and texts that differ stay different.
std::string as_utf8(std::string_view text);

}  // namespace retort::base
