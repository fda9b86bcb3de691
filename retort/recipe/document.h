#pragma once
// YAML from strangers as a tree that knows where each value stands.  Size, depth and number of values are
// capped; aliases, tags, duplicate keys and several documents are refused.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace retort::recipe {

struct Entry;

struct Value {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  std::string place;  ///< "recipe.yaml:12" or "--set a.b=c", for messages
  std::string text;   ///< scalar
  bool quoted = false;
  std::vector<Value> items;    ///< list
  std::vector<Entry> entries;  ///< map, in order of the file

  /// Null when there is no such key.
  Value* find(std::string_view key);
  const Value* find(std::string_view key) const;
};

struct Entry {
  std::string key;
  Value value;
};

/// How the place of a value begins that an override gave.
inline constexpr std::string_view kOverride = "--set";

/// Parses one document; throws UsageError with file and line.
Value parse_yaml(std::string_view text, const std::string& where);

/// Applies "a.b=value" to a tree: an item of a list is addressed by its name, its kind or its number from 0.
/// Keys that do not exist are created, so that reading judges them as it judges those of the file.  Throws
/// UsageError.
void apply_override(Value& root, const std::string& assignment);

}  // namespace retort::recipe
