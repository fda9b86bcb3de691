#include "retort/base/json_file.h"

namespace retort::base {

Json parse_own_json(std::string_view text) {
  return parse_json(text, {.max_bytes = kMostOwnJsonBytes});
}

Json read_own_json(const Path& path) {
  return parse_own_json(read_file(path, kMostOwnJsonBytes));
}

}  // namespace retort::base
