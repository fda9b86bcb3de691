#pragma once
// Results on standard output, each value in a line of its own whatever it holds.

#include <iosfwd>
#include <string>
#include <vector>

#include "retort/base/json.h"

namespace retort::cli {

/// JSON on one line, or for people: "key  value" per line, indented where an object holds objects.
void print(std::ostream& out, const base::Json& result, bool as_json);

/// A number with so many digits behind the point.
std::string fixed(double value, int digits);

/// Rows of a table, of which the first holds the titles.
using Rows = std::vector<std::vector<std::string>>;
/// The table as text; its first `left` columns are words, the others numbers.
std::string table(Rows rows, std::size_t left);

/// A --separator or --prompt as it is typed: \n, \t, \r and \\ stand for what they do in YAML.
std::string unescaped(const std::string& text);

}  // namespace retort::cli
