#pragma once
// Values as text: str() and repr() of Python, and json.dumps as transformers calls it.

#include <optional>
#include <string>

#include "retort/chat/template_value.h"

namespace retort::chat {

/// As str() of Python.  Throws TemplateFault for what reads as an address there.
std::string to_text(const Value& value, Budget& budget);
/// As repr() of Python; likewise.
std::string to_repr(const Value& value, Budget& budget);
/// repr() of a float.
std::string repr_of(double number);
/// A text as Python writes it: in single quotes where it can.
std::string repr_of(std::string_view text);

struct JsonStyle {
  bool only_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  ///< for each level, on lines of their own
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
/// As json.dumps of Python; throws TemplateFault for what JSON cannot say.
std::string to_json(const Value& value, const JsonStyle& style, Budget& budget);

/// As markupsafe.escape.
std::string escaped(std::string_view text);

}  // namespace retort::chat
