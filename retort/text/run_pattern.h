#pragma once
// The simplest of regular expressions: a run of characters of one class, as the tokenizers of DeepSeek have
// several one after the other.

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace retort::text {

class RunPattern {
 public:
  /// `\s?CLASS+`, `CLASS+`, `CLASS` or `CLASS{1,3}`, where CLASS is \p{L}, \p{N}, \p{P}, or characters and
  /// ranges of them in brackets; nothing for any other expression.
  static std::optional<RunPattern> parse(std::string_view regex);

  /// Where the match that starts at `at` ends; `at` itself where none starts.  Takes time in proportion to
  /// the match.
  const char* match(const char* at, const char* end) const;

 private:
  bool contains(char32_t code) const;
  const char* run(const char* at, const char* end) const;

  std::uint16_t classes_ = 0;                          // of CharClass
  std::vector<std::pair<char32_t, char32_t>> ranges_;  // in order, apart
  bool space_before_ = false;
  int limit_ = -1;  // of characters; -1: none
};

}  // namespace retort::text
