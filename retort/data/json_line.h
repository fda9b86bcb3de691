#pragma once
// A line of JSONL: its one member that is asked for, without a tree of the rest.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "retort/base/json.h"

namespace retort::data {

struct JsonLine {
  base::Json root;  ///< what the line is: a scalar as it stands, an object or list without members
  std::optional<base::Json> member;  ///< of an object, in the same way; nothing where there is none
  std::vector<std::string> names;    ///< the first few of an object's members
};

/// As strict as base::parse_json, whatever the line holds beside `field`; takes about as much memory as the
/// line. Throws JsonFault.
JsonLine read_json_line(std::string_view line, std::string_view field);

}  // namespace retort::data
