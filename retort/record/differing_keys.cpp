#include <string>

#include "retort/record/run_directory.h"

namespace retort::record {
namespace {

using base::Json;

std::string below(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

void compare(const Json& a, const Json& b, const std::string& path, std::vector<std::string>& keys) {
  if (a.is_object() && b.is_object()) {
    for (const auto& [key, value] : a.items()) {
      const auto other = b.find(key);
      if (other == b.end())
        keys.push_back(below(path, key));
      else
        compare(value, *other, below(path, key), keys);
    }
    for (const auto& [key, value] : b.items())
      if (!a.contains(key)) keys.push_back(below(path, key));
  } else if (a.is_array() && b.is_array() && a.size() == b.size()) {
    for (std::size_t i = 0; i < a.size(); ++i) compare(a[i], b[i], below(path, std::to_string(i)), keys);
  } else if (a != b) {
    keys.push_back(path);
  }
}

}  // namespace

std::vector<std::string> differing_keys(const Json& a, const Json& b) {
  std::vector<std::string> keys;
  compare(a, b, "", keys);
  return keys;
}

}  // namespace retort::record
