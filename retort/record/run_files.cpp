#include "retort/record/run_files.h"

#include <algorithm>
#include <system_error>

#include "retort/base/error.h"

namespace retort::record {
namespace {

using base::Json;
using base::Path;

constexpr std::size_t kMaxJsonBytes = std::size_t{1} << 26;

bool is_file(const Path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

Json read_json(const Path& path) {
  try {
    return base::parse_json(base::read_file(path, kMaxJsonBytes), {.max_bytes = kMaxJsonBytes});
  } catch (const base::JsonFault& fault) {
    throw base::DataError(base::join(path.string(), ": byte ", fault.byte, ": ", fault.reason,
                                     "; the run directory is damaged, choose another --run-dir."));
  }
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
  std::error_code ignored;
  for (const auto& folder : {results_path(), checkpoints_path(), models_path()})
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      const auto name = entry.path().filename().string();
      if (name.starts_with(std::string(stage) + ".")) return true;  // a result, or a student's
      if (name == stage && base::holds_files(entry.path())) return true;
    }
  return false;
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
  return read_json(result_path(stage));
}

}  // namespace retort::record
