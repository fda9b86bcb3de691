#pragma once
// What makes an answer of a generated text, as the filters of lm-evaluation-harness do.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "retort/base/json.h"
#include "retort/base/words.h"
#include "retort/chat/python_regex.h"

namespace retort::tasks {

enum class FilterKind { take_first, regex, remove_whitespace, lowercase, uppercase, map };
constexpr auto words_of(FilterKind) {
  return base::words<FilterKind::map>("take_first", "regex", "remove_whitespace", "lowercase", "uppercase",
                                      "map");
}

struct FilterStep {
  FilterKind kind = FilterKind::take_first;
  std::optional<chat::PythonRegex> regex;
  std::int64_t group_select = 0;  ///< which match, negative from the end
  std::string fallback = "[invalid]";
  std::vector<std::pair<std::string, base::Json>> mapping;  ///< texts and what they become
  base::Json default_value;                                 ///< of texts without one
};

struct FilterChain {
  std::string name;
  std::vector<FilterStep> steps;
};

/// The answer that a chain makes of a generated text: a text, or what a map gave.  Throws DataError where
/// Python would fail, with `where`.
base::Json filtered(const FilterChain& chain, const std::string& text, const std::string& where);

}  // namespace retort::tasks
