#pragma once
// YAML from strangers as a tree that knows where each value stands.  Size, depth and number of values are
// capped; aliases, tags, duplicate keys and several documents are refused.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace retort::io {

struct YamlEntry;

struct YamlValue {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  std::string place;  ///< "recipe.yaml:12" or "--set a.b=c", for messages
  std::string text;   ///< scalar
  bool quoted = false;
  std::vector<YamlValue> items;    ///< list
  std::vector<YamlEntry> entries;  ///< map, in order of the file

  /// Null when there is no such key.
  YamlValue* find(std::string_view key);
  const YamlValue* find(std::string_view key) const;
};

struct YamlEntry {
  std::string key;
  YamlValue value;
};

inline constexpr std::size_t kMaxYamlBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxYamlDepth = 16;

/// Whether each value's place has its line, or all have the same.
enum class YamlPlaces { lines, one };

/// Parses one document; throws UsageError with file and line.
YamlValue parse_yaml(std::string_view text, const std::string& where, YamlPlaces places = YamlPlaces::lines);

}  // namespace retort::io
