#include <algorithm>
#include <map>

#include "retort/base/error.h"
#include "retort/tasks/scores.h"

namespace retort::tasks {
namespace {

using base::Json;

// The metric that a result names; those of a perplexity are two numbers for each document.
Json value_json(const MetricScore& score, const DocumentValue& value) {
  switch (score.aggregation) {
    case Aggregation::weighted_perplexity:
    case Aggregation::bits_per_byte:
      return Json::array({value.value, static_cast<std::int64_t>(value.weight)});
    case Aggregation::f1:
    case Aggregation::matthews_corrcoef:
      return Json::array({value.gold, value.chosen});
    case Aggregation::brier_score:
      return Json::array({value.gold, value.probabilities});
    default:
      return value.value;
  }
}

Json metrics_json(const Task& task, const TaskScores& scores) {
  Json out = {{"name", task.name}, {"alias", task.alias}, {"sample_len", scores.num_documents}};
  for (const auto& score : scores.metrics) {
    const std::string name(base::word(score.metric));
    out[name + "," + score.filter] = score.value;
    out[name + "_stderr," + score.filter] = score.standard_error ? Json(*score.standard_error) : Json("N/A");
  }
  return out;
}

Json higher_is_better_json(const Task& task) {
  Json out = Json::object();
  for (const auto& metric : task.metrics)
    out[std::string(base::word(metric.metric))] = metric.higher_is_better;
  return out;
}

Json arguments_of(const PreparedTask& task, const Request& request) {
  switch (request.kind) {
    case RequestKind::loglikelihood:
      return Json::array({request.context, request.continuation});
    case RequestKind::loglikelihood_rolling:
      return Json::array({request.continuation});
    case RequestKind::generate_until:
      return Json::array({request.context, task.task.config.at("generation_kwargs")});
  }
  return {};
}

Json response_of(const Request& request, const Answer& answer) {
  switch (request.kind) {
    case RequestKind::loglikelihood:
      return Json::array({answer.log_likelihood, answer.is_greedy});
    case RequestKind::loglikelihood_rolling:
      return answer.log_likelihood;
    case RequestKind::generate_until:
      return answer.text;
  }
  return {};
}

Json sample_line(const PreparedTask& task, std::size_t i, const std::vector<Answer>& answers,
                 const TaskScores& scores, const std::string& filter, const std::vector<Json>& filtered) {
  const auto& document = task.documents[i];
  Json line = {{"doc_id", document.id}, {"doc", task.rows[i]}, {"target", document.target}};
  Json arguments = Json::array(), responses = Json::array(), kept = Json::array();
  for (std::size_t j = 0; j < answers.size(); ++j) {
    const auto& request = document.requests[j];
    const bool generated = request.kind == RequestKind::generate_until;
    arguments.push_back(arguments_of(task, request));
    responses.push_back(Json::array({response_of(request, answers[j])}));
    kept.push_back(generated ? filtered[j] : response_of(request, answers[j]));
  }
  line["arguments"] = std::move(arguments);
  line["resps"] = std::move(responses);
  line["filtered_resps"] = std::move(kept);
  line["filter"] = filter;
  line["metrics"] = Json::array();
  for (const auto& score : scores.metrics) {
    if (score.filter != filter) continue;
    const std::string name(base::word(score.metric));
    line["metrics"].push_back(name);
    line[name] = value_json(score, score.values[i]);
  }
  return line;
}

}  // namespace

Json results_json(std::span<const PreparedTask> tasks, std::span<const TaskScores> scores) {
  base::ensure(tasks.size() == scores.size(), "each task has its scores");
  Json results = Json::object(), samples = Json::object(), subtasks = Json::object();
  std::map<std::string, Json> configs, versions, shots, better;  // which lm-eval sorts
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Task& task = tasks[i].task;
    results[task.name] = metrics_json(task, scores[i]);
    samples[task.name] = {{"original", tasks[i].documents_in_split}, {"effective", scores[i].num_documents}};
    configs[task.name] = task.config;
    configs[task.name]["num_fewshot"] = task.shots();
    versions[task.name] = task.version;
    shots[task.name] = task.shots();
    better[task.name] = higher_is_better_json(task);
  }
  return {{"results", std::move(results)},
          {"group_subtasks", std::move(subtasks)},
          {"configs", configs},
          {"versions", versions},
          {"n-shot", shots},
          {"higher_is_better", better},
          {"n-samples", std::move(samples)}};
}

std::vector<Json> sample_lines(const PreparedTask& task, std::span<const std::vector<Answer>> answers,
                               const TaskScores& scores) {
  std::vector<Json> lines;
  for (const auto& [filter, filtered] : scores.filtered)
    for (std::size_t i = 0; i < answers.size(); ++i)
      lines.push_back(sample_line(task, i, answers[i], scores, filter, filtered[i]));
  return lines;
}

}  // namespace retort::tasks
