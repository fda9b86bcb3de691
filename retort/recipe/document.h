#pragma once
// A recipe as a tree, and what the command line changes in it.

#include <string>
#include <string_view>

#include "retort/io/yaml.h"

namespace retort::recipe {

using Entry = io::YamlEntry;
using Value = io::YamlValue;
using io::parse_yaml;

/// How the place of a value begins that an override gave.
inline constexpr std::string_view kOverride = "--set";

/// Applies "a.b=value" to a tree: an item of a list is addressed by its name, its kind or its number from 0.
/// Keys that do not exist are created, so that reading judges them as it judges those of the file.  Throws
/// UsageError.
void apply_override(Value& root, const std::string& assignment);

}  // namespace retort::recipe
