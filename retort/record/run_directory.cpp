#include "retort/record/run_directory.h"

#include <algorithm>
#include <system_error>

#include "retort/base/error.h"
#include "retort/record/checked_json.h"
#include "retort/record/keys.h"
#include "retort/record/outputs.h"
#include "retort/record/own_directory.h"

namespace retort::record {
namespace {

using base::Json;
using base::Path;

void write_json(const Path& path, const Json& json) {
  base::write_file_atomically(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::string listed(const std::vector<std::string>& keys) {
  constexpr std::size_t kShown = 12;
  std::string text;
  for (std::size_t i = 0; i < keys.size() && i < kShown; ++i) text += (i ? ", " : "") + keys[i];
  if (keys.size() > kShown) text += base::join(" and ", keys.size() - kShown, " more");
  return text;
}

bool is_of(const std::string& key, const std::string& part) {
  return key == part || key.starts_with(part + ".");
}

/// Objects by name; throws DataError where a damaged recipe has something else.
Json section(const RunFiles& run, const Json& recipe, Key key) {
  auto found = recipe.is_object() ? recipe.value(key, Json::object()) : Json();
  bool sound = found.is_object();
  for (const auto& entry : found) sound = sound && entry.is_object();
  base::require<base::DataError>(sound, run.recipe_path().string(), ": expected ", key,
                                 " by name; the run directory is damaged, choose another --run-dir.");
  return found;
}

/// Whether a stage that has begun reads this text.
bool was_read(const RunFiles& run, const Json& stages, const std::string& source) {
  for (const auto& [name, stage] : stages.items()) {
    const auto read = stage.value(keys::kData, Json());
    if (std::find(read.begin(), read.end(), source) != read.end() && run.has_begun(name)) return true;
  }
  return false;
}

/// Whether `key` is of a stage that has not begun, or of text that only such stages read.
bool is_of_what_comes(const RunFiles& run, const Json& recorded, const Json& wanted, const std::string& key) {
  for (const auto* recipe : {&recorded, &wanted}) {
    const auto stages = section(run, *recipe, keys::kStages);
    for (const auto& [stage, ignored] : stages.items())
      if (is_of(key, base::join(keys::kStages, ".", stage))) return !run.has_begun(stage);
    const auto sources = section(run, *recipe, keys::kData);
    for (const auto& [source, ignored] : sources.items())
      if (is_of(key, base::join(keys::kData, ".", source)))
        return !was_read(run, section(run, recorded, keys::kStages), source);
  }
  return false;
}

/// Whether `key` is an open one of a stage that is not finished: what it made so far stays true.
bool is_open(const RunFiles& run, const RunStart& start, const std::string& key) {
  const std::string first = base::join(keys::kStages, ".");
  return std::ranges::any_of(start.open_keys, [&](const std::string& open) {
    const auto last = "." + open;
    return key.starts_with(first) && key.ends_with(last) &&
           !run.finished(key.substr(first.size(), key.size() - first.size() - last.size()));
  });
}

/// Those of `recorded`, dotted, that no stage has any more.
std::vector<std::string> former_keys(const RunFiles& run, const Json& recorded, const RunStart& start) {
  std::vector<std::string> found;
  const auto stages = section(run, recorded, keys::kStages);
  for (const auto& [name, stage] : stages.items())
    for (const auto& former : start.former_keys)
      if (stage.contains(former)) found.push_back(base::join(keys::kStages, ".", name, ".", former));
  return found;
}

/// Throws UsageError unless recipe.yaml, which is written beside a damaged recipe.json, is the given recipe.
std::string require_same_words(const RunFiles& run, const RunStart& start) {
  std::error_code ignored;
  base::require<base::UsageError>(std::filesystem::is_regular_file(run.recipe_yaml_path(), ignored) &&
                                      base::read_file(run.recipe_yaml_path()) == start.recipe_yaml,
                                  run.recipe_path().string(),
                                  ": is damaged, and recipe.yaml beside it is not the given recipe; give ",
                                  "the recipe that the run was started with, or choose another --run-dir.");
  return base::join(run.recipe_path().string(),
                    ": is damaged; recipe.yaml beside it is the given recipe, so the run goes on and writes ",
                    "it again.");
}

/// A recipe that changed half-way would give a result that no recipe describes.  Returns a warning where
/// recipe.json was damaged or has keys of an earlier version, else nothing.
std::string require_same_recipe(const RunFiles& run, const RunStart& start) try {
  const auto recorded = run.recipe();
  auto keys = differing_keys(recorded, start.recipe);
  const auto former = former_keys(run, recorded, start);
  std::erase_if(keys, [&](const auto& key) {
    return is_open(run, start, key) || is_of_what_comes(run, recorded, start.recipe, key) ||
           std::ranges::count(former, key) > 0;
  });
  base::require<base::UsageError>(
      keys.empty(), run.path().string(), ": this run was started with another recipe; it differs in ",
      listed(keys), "; choose another --run-dir or restore ", keys.size() == 1 ? "it." : "them.");
  if (former.empty()) return {};
  return base::join(run.recipe_path().string(), ": an earlier version wrote ", listed(former),
                    ", which this one does not read; the run goes on without ",
                    former.size() == 1 ? "it." : "them.");
} catch (const base::DataError&) {
  return require_same_words(run, start);
}

// Null where it is damaged.
Json recipe_or_null(const RunFiles& run) {
  try {
    return run.recipe();
  } catch (const base::DataError&) {
    return {};
  }
}

}  // namespace

RunDirectory::RunDirectory(const Path& path) : RunFiles(path) {
  const auto is_absent = [](const Path& place) {  // a link to nowhere is there
    std::error_code ignored;
    return !std::filesystem::exists(std::filesystem::symlink_status(place, ignored));
  };
  for (Path missing = std::filesystem::absolute(path).lexically_normal();
       missing.has_relative_path() && is_absent(missing); missing = missing.parent_path())
    created_.push_back(missing);
}

RunDirectory RunDirectory::opened_by_another(const base::Path& path) {
  return RunDirectory(path);
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

void RunDirectory::check(const Path& path, const RunStart& start) {
  require_own_or_empty(path);
  const RunFiles run(path);
  if (run.holds_run()) (void)require_same_recipe(run, start);
}

// A log: what it said is lost where it is damaged, and the run goes on.
void RunDirectory::add_start(const Json& provenance) {
  std::error_code ignored;
  Json all;
  try {
    if (std::filesystem::exists(provenance_path(), ignored)) all = this->provenance();
  } catch (const base::DataError& damage) {
    warnings_.push_back(
        base::join(damage.what(), " What it said of earlier starts is lost; the run goes on."));
  }
  if (!all.is_object() || !all.contains(keys::kStarts) || !all[keys::kStarts].is_array())
    all = {{keys::kStarts, Json::array()}};
  all[keys::kStarts].push_back(provenance);
  write_json(provenance_path(), all);
}

void RunDirectory::enter(const RunStart& start) {
  require_own_or_empty(path());
  base::make_directories(path());
  // Before anything else is there: what is found without the mark is of somebody else.  Once more under the
  // lock, since another start that failed may have taken it away.
  if (!holds_run()) mark_as_own(path());
  lock_ = std::make_unique<base::DirectoryLock>(path());
  mark_as_own(path());
  if (!lock_->warning().empty()) warnings_.push_back(lock_->warning());
  resumed_ = holds_run();
  if (resumed_)
    if (auto warning = require_same_recipe(*this, start); !warning.empty())
      warnings_.push_back(std::move(warning));
  base::remove_leftovers(path());
  for (const Path& folder : folders()) {
    base::make_directories(folder);
    base::remove_leftovers(folder);
  }
  const bool differs = resumed_ && recipe_or_null(*this) != start.recipe;
  if (differs) {  // a crash leaves no file in words beside an object that says something else
    base::remove_all(recipe_yaml_path());
    write_json(recipe_path(), start.recipe);
  }
  base::write_file_atomically(recipe_yaml_path(), start.recipe_yaml);
  add_start(start.provenance);
  // Last: this file is what makes the directory a run.
  if (!resumed_) write_json(recipe_path(), start.recipe);
}

void RunDirectory::discard_if_nothing_was_made() const noexcept try {
  std::error_code error;
  if (resumed_) return;
  if (!lock_) {
    unmark_if_empty(path());
    return remove_created();
  }
  if (std::filesystem::exists(metrics_path(), error) && std::filesystem::file_size(metrics_path(), error) > 0)
    return;
  if (base::holds_files(texts_path())) return;
  for (const Path& folder : folders()) {
    base::remove_leftovers(folder);
    if (base::holds_files(folder)) return;
  }
  for (const Path& file :
       {recipe_path(), recipe_yaml_path(), provenance_path(), inputs_path(), metrics_path(), lock_path()})
    std::filesystem::remove(file, error);
  for (const Path& folder : folders()) std::filesystem::remove(folder, error);
  unmark_if_empty(path());
  remove_created();
} catch (const std::exception&) {
  return;  // the error that led here is the one to tell
}

void RunDirectory::remove_created() const {
  std::error_code ignored;  // a directory that holds anything stays
  for (const Path& directory : created_) std::filesystem::remove(directory, ignored);
}

void RunDirectory::write_result(std::string_view stage, const Json& result) const {
  Json with_outputs = result;
  with_outputs[kOutputFiles] = describe_outputs(*this, stage);
  write_checked_json(result_path(stage), with_outputs);
}

}  // namespace retort::record
