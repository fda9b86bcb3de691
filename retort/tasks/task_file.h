#pragma once
// A YAML file of a task as values of JSON, as PyYAML reads them, with what it includes.

#include <string>
#include <utility>
#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/io/yaml.h"

namespace retort::tasks {

/// A value as PyYAML resolves it: `yes` is true, `1e3` a text, `0x10` a number.
base::Json resolved(const io::YamlValue& value);

/// A file with the keys of those that it includes, which its own keys replace.  Throws UsageError for what is
/// no map, a cycle, and more than 64 files; StorageError.
io::YamlValue read_task_map(const base::Path& file);

/// Mistakes of a file, all of which are reported at once.
class Mistakes {
 public:
  void add(const io::YamlValue& value, const std::string& what) { add(value.place, what); }
  void add(const std::string& place, const std::string& what) {
    found_.push_back(place + ": " + what + (what.ends_with('?') ? "" : "."));
  }
  /// Throws UsageError where there are any.
  void refuse(const std::string& file) const;

 private:
  std::vector<std::string> found_;
};

/// Reports the keys of a map that are not known, with the nearest one.
void require_known(const io::YamlValue& map, const std::vector<std::string>& known, Mistakes& mistakes);

}  // namespace retort::tasks
