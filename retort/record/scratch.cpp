#include "retort/record/scratch.h"

#include "retort/base/json_file.h"

namespace retort::record {
namespace {

constexpr const char* kIdentity = "identity.json";

}  // namespace

bool is_scratch_of(const base::Path& scratch, const base::Json& identity) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(scratch / kIdentity, ignored)) return false;
  try {
    return base::read_own_json(scratch / kIdentity) == identity;
  } catch (const base::JsonFault&) {
    return false;
  }
}

void enter_scratch(const base::Path& scratch, const base::Json& identity,
                   const std::vector<base::Path>& results) {
  const bool same = is_scratch_of(scratch, identity);
  auto directories = results;
  directories.push_back(scratch);
  for (const auto& directory : directories) {
    if (!same) base::remove_all(directory);
    base::make_directories(directory);
    base::remove_leftovers(directory);
  }
  if (!same) base::write_file_atomically(scratch / kIdentity, identity.dump() + "\n");
}

}  // namespace retort::record
