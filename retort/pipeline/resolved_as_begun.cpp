#include "retort/pipeline/resolved_as_begun.h"

#include <string>
#include <vector>

#include "retort/base/error.h"
#include "retort/record/keys.h"
#include "retort/record/run_files.h"

namespace retort::pipeline {
namespace {

using base::Json;

// Gives `resolved` the words of the run's own recipe, which a later version writes in another way: keys that
// it lacks go where they have the same value there, and values that mean the same are written as it has them.
void write_as_recorded(Json& resolved, const Json& recorded, const Json& begun) {
  std::vector<std::string> added;
  for (auto& [key, value] : resolved.items()) {
    if (!begun.contains(key)) continue;
    if (!recorded.contains(key)) {
      if (begun.at(key) == value) added.push_back(key);
    } else if (begun.at(key) == value) {
      value = recorded.at(key);
    } else if (key == "bos" && value == "auto" && recorded.at(key) == true) {
      value = true;  // the default of a version that refused a model without the token
    } else if (value.is_object() && recorded.at(key).is_object() && begun.at(key).is_object()) {
      write_as_recorded(value, recorded.at(key), begun.at(key));
    }
  }
  for (const auto& key : added) resolved.erase(key);
}

Json without_former_keys(Json recorded) {
  for (auto& stage : recorded.at(record::keys::kStages))
    for (const auto& key : recipe::former_stage_keys()) stage.erase(key);
  return recorded;
}

}  // namespace

Json resolved_as_begun(const recipe::Recipe& recipe, const base::Path& run_directory) {
  auto resolved = recipe::to_json(recipe);
  const record::RunFiles run(run_directory);
  if (!run.holds_run()) return resolved;
  try {
    const auto begun = recipe::to_json(recipe::read_recorded_recipe(run.recipe_yaml_path()));
    const auto recorded = without_former_keys(run.recipe());
    if (begun == resolved) return recorded;
    write_as_recorded(resolved, recorded, begun);
  } catch (const base::Error&) {  // damaged: entering the directory says so
  } catch (const Json::exception&) {
  }
  return resolved;
}

}  // namespace retort::pipeline
