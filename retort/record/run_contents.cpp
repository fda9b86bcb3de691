#include "retort/record/run_contents.h"

#include <algorithm>
#include <fstream>
#include <unordered_map>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/json_file.h"
#include "retort/base/printable.h"
#include "retort/record/checked_json.h"
#include "retort/record/keys.h"
#include "retort/record/metrics.h"
#include "retort/record/outputs.h"
#include "retort/record/run_files.h"

namespace retort::record {
namespace {

using base::Json;
using base::Path;

constexpr std::size_t kMaxMetricsBytes = std::size_t{1} << 32;  // of a million steps and more
constexpr std::size_t kMaxMetricsLines = 1'000'000;             // each takes up to 400 bytes of memory

/// The file's text, "" with a note when it is there but cannot be read, "" when it is absent.
std::string read_text(const Path& path, RunContents& run) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  try {
    return base::read_file(path, base::kMostOwnJsonBytes);
  } catch (const base::Error& error) {
    run.notes.push_back(base::join(path.filename().string(), " is left out: ", error.what()));
    return {};
  }
}

Json read_json(const Path& path, RunContents& run) {
  const std::string content = read_text(path, run);
  if (content.empty()) return {};
  try {
    return base::parse_own_json(content);
  } catch (const base::JsonFault& fault) {
    run.notes.push_back(
        base::join(path.filename().string(), " is left out: ", fault.reason, " at byte ", fault.byte, "."));
    return {};
  }
}

/// The stages of a run by name: each line of the metrics may name another.
class Stages {
 public:
  explicit Stages(RunContents& run) : stages_(run.stages) {}
  StageContents& named(const std::string& name) {
    const auto [place, is_new] = places_.emplace(name, stages_.size());
    if (is_new) stages_.push_back({.name = name, .kind = {}, .recipe = {}, .result = {}, .metrics = {}});
    return stages_[place->second];
  }

 private:
  std::vector<StageContents>& stages_;
  std::unordered_map<std::string, std::size_t> places_;
};

void take_recipe_stages(RunContents& run, Stages& all) {
  if (!run.recipe.is_object()) return;
  const auto stages = run.recipe.find(keys::kStages);
  if (stages == run.recipe.end() || !stages->is_object()) return;
  for (const auto& [name, stage] : stages->items()) all.named(name).recipe = stage;
}

/// Names come from the directory, never from the recipe: no name can lead out of it.
void take_results(const RunFiles& files, RunContents& run, Stages& all) {
  for (const auto& name : files.finished_stages()) {
    Json result = read_json(files.result_path(name), run);
    if (!result.is_object()) continue;
    if (!is_sound_result(result))
      run.notes.push_back(base::join(name, ".json is left out: its checksum does not fit."));
    else
      all.named(name).result = std::move(result);
  }
}

void take_metrics(const Path& path, RunContents& run, Stages& all) {
  std::error_code absent;
  const auto size = std::filesystem::file_size(path, absent);
  if (absent) return;
  if (size > kMaxMetricsBytes) {
    run.notes.push_back(base::join(path.filename().string(), " is left out: it has ", size,
                                   " bytes, more than ", kMaxMetricsBytes, "."));
    return;
  }
  std::int64_t damaged = 0;
  std::size_t lines = 0;
  try {
    damaged = for_each_metric(path, [&](const Json& json) {
      MetricsLine line = metrics_line(json);
      if (line.stage.empty() || ++lines > kMaxMetricsLines) return;
      auto& stage = all.named(line.stage);
      stage.metrics.push_back(std::move(line));
    });
  } catch (const base::StorageError& error) {
    run.notes.push_back(base::join(path.filename().string(), " is left out: ", error.what()));
  }
  if (lines > kMaxMetricsLines)
    run.notes.push_back(base::join(path.filename().string(), ": ", lines - kMaxMetricsLines,
                                   " lines after the first ", kMaxMetricsLines, " are left out."));
  if (damaged > 0)
    run.notes.push_back(
        base::join(path.filename().string(), ": ", damaged, " unreadable lines are left out."));
}

/// The first lines of a file that may be long.
std::vector<Json> first_lines(const Path& path) {
  constexpr std::size_t kLines = 4, kMostBytes = std::size_t{1} << 20;
  std::vector<Json> lines;
  std::ifstream in(path, std::ios::binary);
  std::string line;
  for (char byte = 0; lines.size() < kLines && line.size() < kMostBytes && in.get(byte);) {
    if (byte != '\n') {
      line += byte;
      continue;
    }
    try {
      lines.push_back(base::parse_json(line));
    } catch (const base::JsonFault&) {
      break;
    }
    line.clear();
  }
  return lines;
}

/// Names come from the directory, as those of results.
void take_texts(const RunFiles& files, RunContents& run) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(files.texts_path(), ignored)) {
    const auto source = base::as_utf8(entry.path().filename().native());
    const auto path = files.text_path(source);
    auto about = read_json(Path(path) += ".about.json", run);
    if (!about.is_object()) continue;
    if (!checksum_fits(about))
      run.notes.push_back(base::join("text ", source, " is left out: its checksum does not fit."));
    else
      run.texts.push_back({source, std::move(about), first_lines(path)});
  }
  std::ranges::sort(run.texts, {}, &TextContents::source);
}

std::string kind_of(const Json& object) {
  if (!object.is_object()) return {};
  const auto kind = object.find(keys::kKind);
  return kind != object.end() && kind->is_string() ? kind->get<std::string>() : std::string();
}

}  // namespace

RunContents read_run(const Path& directory) {
  std::error_code ignored;
  base::require<base::StorageError>(std::filesystem::is_directory(directory, ignored), directory.string(),
                                    ": expected a run directory, found none; give the directory of a run.");
  const RunFiles files(directory);
  RunContents run;
  Path absolute = std::filesystem::absolute(directory, ignored).lexically_normal();
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  run.name = base::as_utf8(absolute.filename().native());
  run.recipe_text = read_text(files.recipe_yaml_path(), run);
  run.recipe = read_json(files.recipe_path(), run);
  run.provenance = read_json(files.provenance_path(), run);
  Stages all(run);
  take_recipe_stages(run, all);
  take_results(files, run, all);
  take_metrics(files.metrics_path(), run, all);
  take_texts(files, run);
  for (auto& stage : run.stages) {
    stage.kind = kind_of(stage.result);
    if (stage.kind.empty()) stage.kind = kind_of(stage.recipe);
  }
  return run;
}

}  // namespace retort::record
