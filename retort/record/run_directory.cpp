#include "retort/record/run_directory.h"

#include <system_error>

#include "retort/base/error.h"

namespace retort::record {
namespace {

using base::Json;
using base::Path;

constexpr const char* kFolders[] = {"models", "checkpoints", "stages"};
constexpr std::size_t kMaxJsonBytes = std::size_t{1} << 26;

Path recipe_path(const Path& run) {
  return run / "recipe.json";
}
Path provenance_path(const Path& run) {
  return run / "provenance.json";
}

void write_json(const Path& path, const Json& json) {
  base::write_file_atomically(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Json read_json(const Path& path) {
  try {
    return base::parse_json(base::read_file(path, kMaxJsonBytes),
                            {.max_bytes = kMaxJsonBytes, .max_depth = 64});
  } catch (const base::JsonFault& fault) {
    throw base::DataError(base::join(path.string(), ": byte ", fault.byte, ": ", fault.reason,
                                     "; the run directory is damaged, choose another --run-dir."));
  }
}

std::string listed(const std::vector<std::string>& keys) {
  constexpr std::size_t kShown = 12;
  std::string text;
  for (std::size_t i = 0; i < keys.size() && i < kShown; ++i) text += (i ? ", " : "") + keys[i];
  if (keys.size() > kShown) text += base::join(" and ", keys.size() - kShown, " more");
  return text;
}

/// A recipe that changed half-way would give a result that no recipe describes.
void require_same_recipe(const Path& run, const Json& recipe) {
  const auto keys = differing_keys(read_json(recipe_path(run)), recipe);
  base::require<base::UsageError>(
      keys.empty(), run.string(), ": this run was started with another recipe; it differs in ", listed(keys),
      "; choose another --run-dir or restore ", keys.size() == 1 ? "it." : "them.");
}

void add_start(const Path& run, const Json& provenance) {
  const Path path = provenance_path(run);
  std::error_code ignored;
  Json all = std::filesystem::exists(path, ignored) ? read_json(path) : Json::object();
  if (!all.is_object() || !all.contains("starts") || !all["starts"].is_array())
    all = {{"starts", Json::array()}};
  all["starts"].push_back(provenance);
  write_json(path, all);
}

}  // namespace

RunDirectory::RunDirectory(Path path) : path_(std::move(path)) {
  std::error_code ignored;
  for (Path missing = std::filesystem::absolute(path_).lexically_normal();
       missing.has_relative_path() && !std::filesystem::exists(missing, ignored);
       missing = missing.parent_path())
    created_.push_back(missing);
}

RunDirectory RunDirectory::open(const Path& path, const RunStart& start) {
  RunDirectory run(path);
  try {
    run.enter(start);
  } catch (...) {
    run.discard_if_nothing_was_made();
    throw;
  }
  return run;
}

void RunDirectory::enter(const RunStart& start) {
  base::make_directories(path_);
  lock_ = std::make_unique<base::DirectoryLock>(path_);
  resumed_ = is_run_directory(path_);
  if (resumed_) require_same_recipe(path_, start.recipe);
  base::remove_leftovers(path_);
  for (const char* folder : kFolders) {
    base::make_directories(path_ / folder);
    base::remove_leftovers(path_ / folder);
  }
  base::write_file_atomically(path_ / "recipe.yaml", start.recipe_yaml);
  add_start(path_, start.provenance);
  // Last: this file is what makes the directory a run.
  if (!resumed_) write_json(recipe_path(path_), start.recipe);
}

void RunDirectory::discard_if_nothing_was_made() const noexcept try {
  std::error_code error;
  if (resumed_ || !lock_) return remove_created();
  if (std::filesystem::exists(metrics_path(), error) && std::filesystem::file_size(metrics_path(), error) > 0)
    return;
  for (const char* folder : kFolders) {
    base::remove_leftovers(path_ / folder);
    if (std::filesystem::exists(path_ / folder, error) && !std::filesystem::is_empty(path_ / folder, error))
      return;
  }
  for (const char* name : {"recipe.json", "recipe.yaml", "provenance.json", "metrics.jsonl", "models",
                           "checkpoints", "stages", "lock"})
    std::filesystem::remove(path_ / name, error);
  remove_created();
} catch (const std::exception&) {
  return;  // the error that led here is the one to tell
}

void RunDirectory::remove_created() const {
  std::error_code ignored;  // a directory that holds anything stays
  for (const Path& directory : created_) std::filesystem::remove(directory, ignored);
}

Path RunDirectory::result_path(std::string_view stage) const {
  return path_ / "stages" / (std::string(stage) + ".json");
}

Path RunDirectory::documents_path(std::string_view stage) const {
  return path_ / "stages" / (std::string(stage) + ".documents.jsonl");
}

bool RunDirectory::finished(std::string_view stage) const {
  std::error_code ignored;
  return std::filesystem::is_regular_file(result_path(stage), ignored);
}

Json RunDirectory::result(std::string_view stage) const {
  return read_json(result_path(stage));
}

void RunDirectory::write_result(std::string_view stage, const Json& result) const {
  write_json(result_path(stage), result);
}

bool is_run_directory(const Path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(recipe_path(path), ignored);
}

RunContents read_run(const Path& path) {
  RunContents contents{read_json(recipe_path(path)), read_json(provenance_path(path)), {}};
  const auto stages = contents.recipe.find("stages");
  if (stages == contents.recipe.end()) return contents;
  for (const auto& [stage, options] : stages->items()) {
    const Path file = path / "stages" / (stage + ".json");
    std::error_code ignored;
    if (std::filesystem::is_regular_file(file, ignored))
      contents.results.emplace_back(stage, read_json(file));
  }
  return contents;
}

}  // namespace retort::record
