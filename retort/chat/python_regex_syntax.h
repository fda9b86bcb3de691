#pragma once
// The syntax tree of a regular expression of Python.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "retort/chat/python_regex.h"

namespace retort::chat {

/// Characters by ranges and by classes.
struct CharacterSet {
  enum class Class { digit, space, word };
  std::vector<std::pair<char32_t, char32_t>> ranges;
  std::vector<std::pair<Class, bool>> classes;  ///< true: those that are not in the class
  bool negated = false;
  bool ignores_case = false;
};

struct RegexNode {
  enum class Kind {
    character,  ///< `code`
    set,
    any,  ///< all but a line's end
    all,  ///< any character
    text_begin,
    line_begin,
    text_end,
    text_end_or_newline,  ///< $
    line_end,
    border,     ///< \b
    no_border,  ///< \B
    reference,  ///< to the group `group`
    group,      ///< child 0, kept as `group`, or not kept where it is 0
    sequence,
    alternation,
    repeat,  ///< child 0, `least` to `most` times
    look     ///< child 0 ahead, or behind within `width` characters
  };
  static constexpr std::int64_t kNoBound = -1;

  Kind kind = Kind::sequence;
  char32_t code = 0;
  bool ignores_case = false, lazy = false, behind = false, negated = false;
  std::size_t group = 0;
  std::int64_t least = 0, most = kNoBound;
  std::int64_t width = 0;
  CharacterSet set;
  std::vector<std::unique_ptr<RegexNode>> children;
};
using RegexNodePtr = std::unique_ptr<RegexNode>;

struct RegexSyntax {
  RegexNodePtr root;
  std::size_t num_groups = 0;
  std::vector<std::pair<std::string, std::size_t>> names;
};

/// Throws RegexFault for what Python refuses, and for what Retort lacks.
RegexSyntax parse_regex(std::string_view pattern);

/// Lower case where it is one character, as Python's IGNORECASE compares.
char32_t lower_of(char32_t code);

}  // namespace retort::chat
