#pragma once
// The words of an enum that recipes and results name, kept beside the enum as
//
//   constexpr auto words_of(Colour) { return base::words<Colour::blue>("red", "green", "blue"); }
//
// and found through the enum's namespace by whoever reads or writes such a word.

#include <array>
#include <cstddef>
#include <string_view>

namespace retort::base {

/// Returns the words of an enum whose values are 0, 1, ... kLast, in this order; their number is checked at
/// compile time.
template <auto kLast, typename... Word>
constexpr std::array<std::string_view, sizeof...(Word)> words(Word... word) {
  static_assert(sizeof...(Word) == static_cast<std::size_t>(kLast) + 1, "one word for each value");
  return {word...};
}

/// Returns the word of a value.
template <typename Enum>
constexpr std::string_view word(Enum value) {
  return words_of(value)[static_cast<std::size_t>(value)];
}

}  // namespace retort::base
