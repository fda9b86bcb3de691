#include "retort/record/checked_json.h"

#include <string>
#include <utility>

#include "retort/base/hash.h"

namespace retort::record {
namespace {

using base::Json;

// Names of files may be any bytes.
std::string dumped(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string checksum_of(Json object) {
  object.erase(kChecksum);
  base::Hasher hasher;
  const auto text = dumped(object, -1);
  hasher.update(text.data(), text.size());
  return hasher.hex();
}

}  // namespace

Json with_checksum(Json object) {
  object[kChecksum] = checksum_of(object);
  return object;
}

bool checksum_fits(const Json& object) {
  return object.is_object() && object.contains(kChecksum) && object.at(kChecksum) == checksum_of(object);
}

void write_checked_json(const base::Path& path, const Json& object) {
  base::write_file_atomically(path, dumped(with_checksum(object), 2) + "\n");
}

}  // namespace retort::record
