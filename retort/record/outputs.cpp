#include "retort/record/outputs.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/base/printable.h"
#include "retort/record/checked_json.h"

namespace retort::record {
namespace {

using base::Json;
using base::Path;

constexpr Key kModified{"modified_nanoseconds"}, kInode{"inode"}, kHash{"xxh128"};

// Size, time and inode; null where there is no such file.
Json looked_at(const Path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) {
    base::require<base::StorageError>(errno == ENOENT || errno == ENOTDIR, file.string(),
                                      ": cannot be looked at: ", base::system_message(errno), ".");
    return {};
  }
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  return {{keys::kBytes, status.st_size},
          {kModified, status.st_mtim.tv_sec * kNanoseconds + status.st_mtim.tv_nsec},
          {kInode, status.st_ino}};
}

// JSON holds no name that is not UTF-8, such as that of a chat template.
bool is_output(const std::filesystem::directory_entry& entry) {
  std::error_code ignored;
  const auto name = entry.path().filename().string();
  return entry.is_regular_file(ignored) && base::as_utf8(name) == name &&
         name.find(".unfinished-") == std::string::npos;
}

std::vector<Path> outputs_of(const RunFiles& run, std::string_view stage) {
  std::vector<Path> files;
  std::error_code ignored;
  for (const Path& folder : {run.model_directory(stage), run.stage_directory(stage)})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, ignored))
      if (is_output(entry)) files.push_back(entry.path());
  if (std::filesystem::is_regular_file(run.documents_path(stage), ignored))
    files.push_back(run.documents_path(stage));
  std::sort(files.begin(), files.end());
  return files;
}

bool same(const Json& a, const Json& b, Key key) {
  return a.contains(key) && b.contains(key) && a.at(key) == b.at(key);
}

std::string wrong_with(const Path& file, const std::string& name, const Json& then, Look look) {
  const Json now = looked_at(file);
  if (now.is_null()) return name + " is gone";
  if (!then.is_object()) return {};
  const std::string changed = name + " has changed";
  if (!same(now, then, keys::kBytes)) return changed;
  const bool untouched = same(now, then, kModified) && same(now, then, kInode);
  if (look == Look::contents_where_times_differ && untouched) return {};
  return then.value(kHash, Json()) == base::hash_file(file) ? std::string() : changed;
}

}  // namespace

bool is_sound_result(const Json& result) {
  const bool has_checksum =
      result.is_object() && (result.contains(kChecksum) || result.contains(kOutputFiles));
  return !has_checksum || checksum_fits(result);
}

Json describe_outputs(const RunFiles& run, std::string_view stage) {
  Json files = Json::object();
  for (const Path& file : outputs_of(run, stage)) {
    Json described = looked_at(file);
    described[kHash] = base::hash_file(file);
    files[file.lexically_relative(run.path()).generic_string()] = std::move(described);
  }
  return files;
}

std::string wrong_with_outputs(const RunFiles& run, std::string_view stage, Look look) {
  const Json result = run.sound_result(stage).value_or(Json::object());
  if (!result.is_object()) return {};
  if (const auto files = result.find(kOutputFiles); files != result.end() && files->is_object()) {
    for (const auto& [name, then] : files->items())
      if (auto wrong = wrong_with(run.path() / name, name, then, look); !wrong.empty()) return wrong;
    return {};
  }
  const Path config = run.model_directory(stage) / "config.json";
  const bool makes_model = result.contains(keys::kParameters);
  return makes_model ? wrong_with(config, config.lexically_relative(run.path()).generic_string(), {}, look)
                     : "";
}

}  // namespace retort::record
