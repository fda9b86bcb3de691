#pragma once
// Text out of strangers' files, made fit for a one-line message.

#include <string>
#include <string_view>
#include <vector>

#include "retort/base/json.h"

namespace retort::io {

/// The text in double quotes, control characters and bytes that are not UTF-8 as \xNN, cut after 120 bytes at
/// the border of a character.
std::string quote(std::string_view text);

/// The first of some, each as quote() has it: "\"a\", \"b\" and 7 more".
std::string listed(const std::vector<std::string>& texts);

/// The same of a value of JSON, whatever it holds: a text as it reads, anything else as it is written.
std::string shown(const base::Json& value);

}  // namespace retort::io
