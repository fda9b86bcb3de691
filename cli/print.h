#pragma once
// Results on standard output.

#include <iosfwd>
#include <string>

#include "retort/base/json.h"

namespace retort::cli {

/// JSON on one line, or for people: "key  value" per line, indented where an object holds objects.
void print(std::ostream& out, const base::Json& result, bool as_json);

/// A --separator as it is typed: \n, \t, \r and \\ stand for what they do in YAML.
std::string unescaped(const std::string& text);

}  // namespace retort::cli
