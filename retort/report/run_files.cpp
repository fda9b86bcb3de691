#include "retort/report/run_files.h"

#include <algorithm>

#include "retort/base/error.h"
#include "retort/report/fields.h"

namespace retort::report {
namespace {

using base::Json;
using base::Path;

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 26;
constexpr std::size_t kMaxMetricsBytes = std::size_t{1} << 28;

/// The file's text, "" with a note when it is there but cannot be read, "" when it is absent.
std::string read_text(const Path& path, std::size_t max_bytes, RunFiles& run) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  try {
    return base::read_file(path, max_bytes);
  } catch (const base::Error& error) {
    run.notes.push_back(base::join(path.filename().string(), " is left out: ", error.what()));
    return {};
  }
}

Json read_json(const Path& path, RunFiles& run) {
  const std::string content = read_text(path, kMaxFileBytes, run);
  if (content.empty()) return {};
  try {
    return base::parse_json(content, {.max_bytes = kMaxFileBytes});
  } catch (const base::JsonFault& fault) {
    run.notes.push_back(
        base::join(path.filename().string(), " is left out: ", fault.reason, " at byte ", fault.byte, "."));
    return {};
  }
}

Stage& stage_named(RunFiles& run, const std::string& name) {
  const auto found =
      std::find_if(run.stages.begin(), run.stages.end(), [&](const Stage& s) { return s.name == name; });
  if (found != run.stages.end()) return *found;
  run.stages.push_back({.name = name, .kind = {}, .recipe = {}, .result = {}, .metrics = {}});
  return run.stages.back();
}

/// The recipe's stages are an object keyed by name or an array of objects with a name.
void take_recipe_stages(RunFiles& run) {
  const Json& stages = field(run.recipe, "stages");
  if (stages.is_object())
    for (const auto& [name, stage] : stages.items()) stage_named(run, name).recipe = stage;
  for (const Json& stage : elements(stages))
    if (const std::string name = text(stage, "name"); !name.empty()) stage_named(run, name).recipe = stage;
}

/// Names come from the directory, never from the recipe: no name can lead out of it.
void take_results(const Path& directory, RunFiles& run) {
  std::vector<Path> files;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored))
    if (entry.path().extension() == ".json" && !entry.path().stem().empty() && entry.is_regular_file(ignored))
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const Path& file : files)
    if (Json result = read_json(file, run); result.is_object())
      stage_named(run, file.stem().string()).result = std::move(result);
}

void take_metrics(const Path& path, RunFiles& run) {
  const std::string content = read_text(path, kMaxMetricsBytes, run);
  std::size_t bad_lines = 0;
  for (std::size_t start = 0; start < content.size();) {
    const std::size_t end = content.find('\n', start);
    if (end == std::string::npos) break;  // a torn last line: the process stopped while writing it
    try {
      Json line = base::parse_json(std::string_view(content).substr(start, end - start));
      const std::string name = text(line, "stage");
      if (!name.empty()) stage_named(run, name).metrics.push_back(std::move(line));
    } catch (const base::JsonFault&) {
      ++bad_lines;
    }
    start = end + 1;
  }
  if (bad_lines > 0)
    run.notes.push_back(base::join("metrics.jsonl: ", bad_lines, " unreadable lines are left out."));
}

std::string kind_of(const Stage& stage) {
  const std::string kind = text(stage.result, "kind");
  return kind.empty() ? text(stage.recipe, "kind") : kind;
}

}  // namespace

RunFiles read_run(const Path& run_directory) {
  std::error_code ignored;
  base::require<base::StorageError>(std::filesystem::is_directory(run_directory, ignored),
                                    run_directory.string(),
                                    ": expected a run directory, found none; give the directory of a run.");
  RunFiles run;
  Path absolute = std::filesystem::absolute(run_directory, ignored).lexically_normal();
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  run.name = absolute.filename().string();
  run.recipe_text = read_text(run_directory / "recipe.yaml", kMaxFileBytes, run);
  run.recipe = read_json(run_directory / "recipe.json", run);
  run.provenance = read_json(run_directory / "provenance.json", run);
  take_recipe_stages(run);
  take_results(run_directory / "stages", run);
  take_metrics(run_directory / "metrics.jsonl", run);
  for (Stage& stage : run.stages) stage.kind = kind_of(stage);
  return run;
}

}  // namespace retort::report
