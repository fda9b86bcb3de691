#include "retort/pipeline/finished_stages.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/json_file.h"
#include "retort/io/model_file_names.h"
#include "retort/model/lineage.h"
#include "retort/recipe/stage_kinds.h"

namespace retort::pipeline {
namespace {

using base::Path;
using recipe::Stage;

std::string advice(const record::RunFiles& run, const std::string& stage) {
  return base::join("; restore it, or remove ", run.result_path(stage).string(),
                    " to have the stage done again.");
}

// Stages whose outputs this one takes.
std::vector<std::string> taken_by(const Stage& stage, const recipe::Recipe& recipe) {
  std::vector<std::string> taken;
  for (const auto& name : stage.models_read())
    if (recipe.find_stage(name)) taken.push_back(name);
  if (!stage.profile.empty()) taken.push_back(stage.profile);
  return taken;
}

// Of which model a stage says in its retort.json that it is; empty where it says nothing.
std::string made_by(const Path& model) {
  std::error_code ignored;
  const Path file = model / model::kLineageFile;
  if (!std::filesystem::is_regular_file(file, ignored)) return {};
  try {
    const auto about = base::read_own_json(file);
    const auto stage = about.value("provenance", base::Json::object()).value("stage", base::Json());
    return stage.is_string() ? stage.get<std::string>() : std::string();
  } catch (const base::JsonFault&) {
    return {};
  } catch (const base::Json::exception&) {
    return {};
  }
}

// A start that ended between saving the model and its result left one, or the user removed the result.
void require_own_model(const record::RunFiles& run, const std::string& stage) {
  const Path model = run.model_directory(stage);
  std::error_code ignored;
  const auto status = std::filesystem::symlink_status(model, ignored);
  if (!std::filesystem::exists(status) ||
      (std::filesystem::is_directory(status) && !base::holds_files(model)))
    return;
  const char* advice = " would be replaced; move it away, or choose another --run-dir.";
  base::require<base::UsageError>(std::filesystem::is_directory(status) && made_by(model) == stage,
                                  model.string(), ": expected nothing, or the model that stage '", stage,
                                  "' made, found another, which", advice);
  for (const auto& entry : std::filesystem::directory_iterator(model, ignored))
    base::require<base::UsageError>(io::is_name_of_model_file(entry.path().filename().string()),
                                    entry.path().string(), ": is no file of the model that stage '", stage,
                                    "' made, and it", advice);
}

// Of a stage that chooses its model: <stage>.1 and so on, as far as their models are there.
std::vector<std::string> unfinished_students(const Stage& stage, const record::RunFiles& run) {
  std::vector<std::string> students;
  if (!recipe::traits_of(stage.kind).makes_model || stage.models.empty()) return students;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(run.models_path(), ignored))
    if (const auto name = entry.path().filename().string();
        name.starts_with(stage.name + ".") && !run.finished(name))
      students.push_back(name);
  return students;
}

void warn_of_damaged(const Stage& stage, const record::RunFiles& run, record::Observer& observer) try {
  (void)run.result(stage.name);
} catch (const base::DataError& damage) {
  observer.message(record::Level::warning,
                   base::join(damage.what(), " What stage '", stage.name,
                              "' found is lost to later stages and to the report; the run goes on."));
}

}  // namespace

void require_sound_inputs(const Stage& stage, const recipe::Recipe& recipe, const record::RunFiles& run,
                          record::Look look) {
  for (const auto& name : taken_by(stage, recipe)) {
    if (!run.finished(name)) continue;
    const auto wrong = record::wrong_with_outputs(run, name, look);
    base::require<base::ModelError>(wrong.empty(), "stage '", stage.name, "': ", run.path().string(), ": ",
                                    wrong, " since stage '", name, "' made it", advice(run, name));
  }
}

void check_finished_stages(const recipe::Recipe& recipe, const record::RunFiles& run,
                           const std::string& only_stage, record::Observer& observer) {
  bool all_finished = true;
  for (const auto& stage : recipe.stages) {
    if (!only_stage.empty() && stage.name != only_stage) continue;
    if (run.finished(stage.name)) continue;
    all_finished = false;
    require_own_model(run, stage.name);
    for (const auto& student : unfinished_students(stage, run)) require_own_model(run, student);
    require_sound_inputs(stage, recipe, run, record::Look::contents_where_times_differ);
  }
  for (const auto& stage : recipe.stages) {
    if (!run.finished(stage.name) || (!only_stage.empty() && stage.name != only_stage)) continue;
    warn_of_damaged(stage, run, observer);
    const auto wrong = record::wrong_with_outputs(run, stage.name, record::Look::contents_where_times_differ);
    if (wrong.empty()) continue;
    const auto sentence = base::join(run.path().string(), ": ", wrong, " since stage '", stage.name,
                                     "' made it", advice(run, stage.name));
    if (all_finished) throw base::ModelError(sentence);
    observer.message(record::Level::warning, sentence);
  }
}

}  // namespace retort::pipeline
