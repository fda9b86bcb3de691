#include "retort/pipeline/measured.h"

#include <filesystem>
#include <set>

#include "retort/base/error.h"
#include "retort/base/printable.h"
#include "retort/record/keys.h"
#include "retort/report/report.h"

namespace retort::pipeline {
namespace {

namespace fs = std::filesystem;
namespace keys = record::keys;
using base::Json;

constexpr std::size_t kMostBytes = std::size_t{1} << 28;

Json read_result(const base::Path& file) try {
  return base::parse_json(base::read_file(file, kMostBytes), {.max_bytes = kMostBytes});
} catch (const base::JsonFault&) {
  return {};
} catch (const base::Error&) {
  return {};
}

bool is(const Json& object, record::Key key, const std::string& text) {
  return object.is_object() && object.contains(key) && object.at(key) == text;
}

}  // namespace

std::string tables_of(const Json& evaluate_result, const std::string& model) {
  if (!evaluate_result.is_object() || !evaluate_result.contains(keys::kModels)) return "";
  Json two = evaluate_result, models = Json::array();
  const Json teacher = evaluate_result.value(keys::kTeacher, Json());
  bool measured = false;
  for (const Json& one : evaluate_result[keys::kModels]) {
    const bool asked = is(one, keys::kName, model);
    if (asked || (teacher.is_string() && is(one, keys::kName, teacher.get<std::string>())))
      models.push_back(one);
    measured = measured || asked;
  }
  if (!measured) return "";
  two[keys::kModels] = models;
  return report::scores_table(two) + report::tasks_table(two);
}

std::string measured_in_run(const base::Path& model) {
  std::error_code ignored;
  const auto path = fs::absolute(model).lexically_normal();
  const auto last = path.has_filename() ? path : path.parent_path();
  const auto stages = last.parent_path().parent_path() / "stages";
  if (last.parent_path().filename() != "models" || !fs::is_directory(stages, ignored)) return "";
  std::set<base::Path> files;
  for (const auto& entry : fs::directory_iterator(stages, ignored))
    if (entry.path().extension() == ".json" && entry.is_regular_file(ignored)) files.insert(entry.path());
  std::string tables;
  for (const auto& file : files)
    if (const Json result = read_result(file); is(result, keys::kKind, "evaluate"))
      tables += tables_of(result, base::as_utf8(last.filename().native()));
  return tables;
}

}  // namespace retort::pipeline
