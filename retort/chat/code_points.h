#pragma once
// Text by its characters, as Python counts them.  Texts are valid UTF-8.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "retort/text/unicode.h"

namespace retort::chat {

template <typename Function>
void for_each_character(std::string_view text, const Function& function) {
  for (std::size_t at = 0; at < text.size();) {
    const auto size = text::read_character(text.data() + at).size;
    function(text.substr(at, size));
    at += size;
  }
}

std::size_t characters_in(std::string_view text);
/// Characters `begin` to `end`, which lie within the text.
std::string_view character_range(std::string_view text, std::size_t begin, std::size_t end);

/// str.isspace of one character.
bool is_space(char32_t code);
/// Bytes of white space that the text begins or ends with.
std::size_t leading_space(std::string_view text);
std::size_t trailing_space(std::string_view text);

/// Which ends strip() takes from.
enum class Ends { both, left, right };
/// str.strip and its kin: white space where `characters` is null, else all characters of that text.
std::string_view strip(std::string_view text, const std::string* characters, Ends ends);

/// str.split at white space; `most` splits, or as many as there are where it is negative.
std::vector<std::string_view> split_at_space(std::string_view text, std::int64_t most);
/// str.split and str.rsplit at a separator that is not empty.
std::vector<std::string_view> split_at(std::string_view text, std::string_view separator, std::int64_t most,
                                       bool from_right);
/// str.splitlines.
std::vector<std::string_view> lines_of(std::string_view text, bool keep_ends);
/// str.replace.
std::string replaced(std::string_view text, std::string_view old, std::string_view by, std::int64_t most);

/// Upper or lower case as Python has it; throws TemplateFault for what the tables do not have.
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
/// str.capitalize.
std::string capitalized(std::string_view text);
/// Whether a character has case, and whether it is of this one.
bool is_upper(char32_t code);
bool is_lower(char32_t code);

}  // namespace retort::chat
