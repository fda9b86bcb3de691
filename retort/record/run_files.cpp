#include "retort/record/run_files.h"

#include <algorithm>
#include <system_error>

#include "retort/base/error.h"
#include "retort/base/json_file.h"
#include "retort/record/outputs.h"

namespace retort::record {
namespace {

using base::Json;
using base::Path;

bool is_file(const Path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

Json read_json(const Path& path) {
  try {
    return base::read_own_json(path);
  } catch (const base::JsonFault& fault) {
    throw base::DataError(base::join(path.string(), ": byte ", fault.byte, ": ", fault.reason,
                                     "; the run directory is damaged, choose another --run-dir."));
  }
}

bool holds_any_of(const Path& folder, std::string_view stage) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with(std::string(stage) + ".")) return true;  // a result, or a student's
    if (name == stage && base::holds_files(entry.path())) return true;
  }
  return false;
}

}  // namespace

Path RunFiles::result_path(std::string_view stage) const {
  return results_path() / (std::string(stage) + ".json");
}

Path RunFiles::documents_path(std::string_view stage) const {
  return results_path() / (std::string(stage) + ".documents.jsonl");
}

bool RunFiles::holds_run() const {
  return is_file(recipe_path());
}

bool RunFiles::finished(std::string_view stage) const {
  return is_file(result_path(stage));
}

bool RunFiles::has_begun(std::string_view stage) const {
  return holds_any_of(models_path(), stage) || has_saved(stage);
}

bool RunFiles::has_saved(std::string_view stage) const {
  return holds_any_of(results_path(), stage) || holds_any_of(checkpoints_path(), stage);
}

std::vector<std::string> RunFiles::finished_stages() const {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(results_path(), ignored)) {
    const auto name = entry.path().stem().string();
    if (entry.path().extension() == ".json" && !name.empty() && finished(name)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Json RunFiles::recipe() const {
  return read_json(recipe_path());
}

Json RunFiles::provenance() const {
  return read_json(provenance_path());
}

Json RunFiles::result(std::string_view stage) const {
  Json result = read_json(result_path(stage));
  base::require<base::DataError>(is_sound_result(result), result_path(stage).string(),
                                 ": the checksum does not fit, the file is damaged.");
  return result;
}

std::optional<Json> RunFiles::sound_result(std::string_view stage) const try {
  return result(stage);
} catch (const base::DataError&) {
  return {};
}

}  // namespace retort::record
