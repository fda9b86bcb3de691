#include "retort/record/run_directory.h"

#include <system_error>

#include "retort/base/error.h"

namespace retort::record {
namespace {

using base::Json;
using base::Path;

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

RunDirectory::RunDirectory(Path path, std::unique_ptr<base::FileLock> lock)
    : path_(std::move(path)), lock_(std::move(lock)) {}

RunDirectory RunDirectory::open(const Path& path, const RunStart& start) {
  base::make_directories(path);
  RunDirectory run(path, std::make_unique<base::FileLock>(path / "lock"));
  run.resumed_ = is_run_directory(path);
  if (run.resumed_) require_same_recipe(path, start.recipe);
  for (const char* folder : {"", "models", "checkpoints", "stages"}) {
    base::make_directories(path / folder);
    base::remove_leftovers(path / folder);
  }
  base::write_file_atomically(path / "recipe.yaml", start.recipe_yaml);
  add_start(path, start.provenance);
  // Last: this file is what makes the directory a run.
  if (!run.resumed_) write_json(recipe_path(path), start.recipe);
  return run;
}

Path RunDirectory::result_path(std::string_view stage) const {
  return path_ / "stages" / (std::string(stage) + ".json");
}

Path RunDirectory::stage_directory(std::string_view stage) const {
  Path directory = path_ / "stages" / stage;
  base::make_directories(directory);
  return directory;
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
