#include "retort/record/own_directory.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/json_file.h"
#include "retort/record/run_files.h"

namespace retort::record {
namespace {

using base::Json;
using base::Path;

constexpr int kFormat = 1;
constexpr const char* kMarker = "run.json";
constexpr const char* kMadeBy = "retort run directory";

bool is_plain_file(const Path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(std::filesystem::symlink_status(path, ignored));
}

// Null where it is absent or damaged: then the other files say what it is.
Json read_or_null(const Path& path) {
  if (!is_plain_file(path)) return {};
  try {
    return base::read_own_json(path);
  } catch (const base::JsonFault&) {
    return {};
  } catch (const base::DataError&) {  // longer than any of ours
    return {};
  }
}

bool has_marker(const Path& directory) {
  const Json marker = read_or_null(directory / kMarker);
  if (!marker.is_object() || marker.value("kind", Json()) != kMadeBy) return false;
  base::require<base::UsageError>(marker.value("format", Json()) == kFormat, (directory / kMarker).string(),
                                  ": format ", marker.value("format", Json()).dump(), ", expected ", kFormat,
                                  "; use the version of Retort that made this run directory.");
  return true;
}

bool is_resolved_recipe(const Json& recipe) {
  if (!recipe.is_object() || !recipe.contains("version") || !recipe.contains("stages")) return false;
  const Json& stages = recipe.at("stages");
  return stages.is_object() && !stages.empty() &&
         std::all_of(stages.begin(), stages.end(),
                     [](const Json& stage) { return stage.is_object() && stage.contains("kind"); });
}

bool is_of_earlier_version(const Path& directory) {
  const RunFiles run(directory);
  std::error_code ignored;
  for (const Path& folder : run.folders())
    if (!std::filesystem::is_directory(folder, ignored)) return false;
  return is_plain_file(run.recipe_yaml_path()) && is_resolved_recipe(read_or_null(run.recipe_path()));
}

// What another start of the same run may be writing just now says nothing.
bool is_of_marker(const std::string& name) {
  const auto unfinished = base::join(".", kMarker, ".unfinished-");
  return name == kMarker || (name.starts_with(unfinished) && name.size() > unfinished.size() &&
                             name.find_first_not_of("0123456789", unfinished.size()) == std::string::npos);
}

std::vector<std::string> names_in(const Path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (const std::filesystem::directory_iterator end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  base::require<base::StorageError>(!error, directory.string(), ": cannot be listed: ", error.message(), ".");
  std::sort(names.begin(), names.end());
  return names;
}

// A link above it counts as well: making the directory would fail there.
void require_no_link_to_nowhere(const Path& path) {
  std::error_code ignored;
  for (Path place = path; !place.empty() && !std::filesystem::exists(place, ignored);
       place = place.parent_path()) {
    if (std::filesystem::is_symlink(std::filesystem::symlink_status(place, ignored)))
      throw base::StorageError(base::join(
          place.string(), ": is a link to ", std::filesystem::read_symlink(place, ignored).string(),
          ", which is not there; mount or make it, or choose another --run-dir."));
    if (place == place.parent_path()) return;
  }
}

// A run writes over its own files.  Behind a link there is a file of somebody else.
void require_no_links(const RunFiles& run) {
  std::error_code ignored;
  for (const Path& file : {run.recipe_path(), run.recipe_yaml_path(), run.provenance_path(),
                           run.metrics_path(), run.report_path(), run.inputs_path(), run.lock_path()})
    base::require<base::UsageError>(
        !std::filesystem::is_symlink(std::filesystem::symlink_status(file, ignored)), file.string(),
        ": is a link, and a run writes over its own files only; replace it by what it leads to, or choose "
        "another "
        "--run-dir.");
}

}  // namespace

bool is_own_directory(const Path& path) {
  return has_marker(path) || is_of_earlier_version(path);
}

void require_own_or_empty(const Path& path) {
  require_no_link_to_nowhere(path);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return;
  base::require<base::StorageError>(std::filesystem::is_directory(path, error), path.string(),
                                    ": is no directory; choose another --run-dir.");
  if (is_own_directory(path)) return require_no_links(RunFiles(path));
  auto others = names_in(path);
  std::erase_if(others, [](const std::string& name) { return name != kMarker && is_of_marker(name); });
  base::require<base::UsageError>(
      others.empty(), path.string(), ": holds files that no run made (", others.empty() ? "" : others.front(),
      others.size() > 1 ? base::join(" and ", others.size() - 1, " more") : "",
      "), and a run works only in a directory of its own; choose a new or an empty one with --run-dir.");
}

void mark_as_own(const Path& path) {
  if (has_marker(path)) return;
  const Json marker = {{"kind", kMadeBy}, {"format", kFormat}};
  base::write_file_atomically(path / kMarker, marker.dump(2) + "\n");
}

void unmark_if_empty(const Path& path) noexcept try {
  const auto names = names_in(path);
  if (!has_marker(path) || !std::all_of(names.begin(), names.end(), is_of_marker)) return;
  std::error_code ignored;
  std::filesystem::remove(path / kMarker, ignored);
} catch (const std::exception&) {
  return;
}

}  // namespace retort::record
