#include "retort/report/task_scores.h"

#include "retort/report/report.h"

namespace retort::report {
namespace {

using base::Json;

constexpr std::string_view kErrorMark = "_stderr";

const Json* comparison_of(const Json& tasks, const TaskScore& score) {
  for (const Json& one : elements(field(tasks, keys::kComparisons)))
    if (text(entry(one, "task")) == score.task && text(entry(one, "metric")) == score.metric &&
        text(entry(one, "filter")) == score.filter)
      return &one;
  return nullptr;
}

}  // namespace

std::vector<TaskScore> task_scores(const Json& model) {
  std::vector<TaskScore> scores;
  const Json& tasks = field(model, keys::kTasks);
  const Json& results = entry(tasks, "results");
  if (!results.is_object()) return scores;
  for (const auto& [task, metrics] : results.items()) {
    if (!metrics.is_object()) continue;
    for (const auto& [name, value] : metrics.items()) {
      const auto comma = name.find(',');
      if (comma == std::string::npos || name.substr(0, comma).ends_with(kErrorMark)) continue;
      TaskScore score{.task = task, .metric = name.substr(0, comma), .filter = name.substr(comma + 1)};
      score.value = number(value);
      score.standard_error =
          number(entry(metrics, score.metric + std::string(kErrorMark) + "," + score.filter));
      score.comparison = comparison_of(tasks, score);
      scores.push_back(std::move(score));
    }
  }
  return scores;
}

Json as_evaluation(const Json& tasks_result) {
  const auto model_of = [](const Json& tasks) {
    return Json{{std::string(keys::kName), text(tasks, keys::kModelName)},
                {std::string(keys::kTasks), tasks}};
  };
  auto models = Json::array();
  const Json& teacher = field(tasks_result, keys::kTeacher);
  if (teacher.is_object()) models.push_back(model_of(teacher));
  models.push_back(model_of(tasks_result));
  return {{std::string(keys::kModels), std::move(models)}};
}

bool is_accuracy(const TaskScore& score) {
  return score.metric.starts_with("acc") || score.metric == "exact_match";
}

std::string value_of(const TaskScore& score) {
  return is_accuracy(score) ? percent(score.value) : significant(score.value, 4);
}

std::string error_of(const TaskScore& score) {
  if (!score.standard_error) return {};
  return is_accuracy(score) ? fixed(*score.standard_error * 100, 1) : significant(score.standard_error, 2);
}

std::string ratio_of(const TaskScore& score, std::string_view ratio) {
  if (!score.comparison) return kMissing;
  const Json& of = entry(*score.comparison, ratio);
  const auto value = number(entry(of, "value"));
  if (!value) return kMissing;
  const auto& interval = elements(entry(of, "interval"));
  if (interval.size() != 2) return percent(value);
  const auto end = [&](std::size_t which) { return fixed(number(interval[which]).value_or(0) * 100, 1); };
  return percent(value) + " (" + end(0) + " to " + end(1) + ")";
}

std::string p_value_of(const TaskScore& score) {
  if (!score.comparison) return kMissing;
  return significant(number(entry(entry(*score.comparison, "mcnemar"), "p_value")), 2);
}

}  // namespace retort::report
