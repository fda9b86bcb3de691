#pragma once
// What a model's answers are worth: values of each document, and of all.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "retort/base/json.h"
#include "retort/tasks/requests.h"

namespace retort::tasks {

/// What a model answered to a request.
struct Answer {
  double log_likelihood = 0;  ///< nats
  bool is_greedy = false;     ///< whether each id of the continuation is the most likely one
  std::string text;           ///< generated, without what ended it
};

/// What a metric has of one document: of most `value` alone.
struct DocumentValue {
  double value = 0;
  double weight = 1;                  ///< words or bytes of a perplexity
  std::int64_t gold = 0, chosen = 0;  ///< of f1 and mcc
  std::vector<double> probabilities;  ///< of brier_score
};

/// A metric after a filter.
struct MetricScore {
  Metric metric = Metric::acc;
  Aggregation aggregation = Aggregation::mean;
  bool higher_is_better = true;
  std::string filter;
  double value = 0;
  std::optional<double> standard_error;  ///< absent: lm-eval says "N/A"
  std::vector<DocumentValue> values;     ///< of each document, in order
};

struct TaskScores {
  std::string task;
  std::vector<MetricScore> metrics;
  std::int64_t num_documents = 0;
  /// By filter, then by document: what the filter made of each generated text.
  std::vector<std::pair<std::string, std::vector<std::vector<base::Json>>>> filtered;

  /// Null where there is none.
  const MetricScore* find(Metric metric, std::string_view filter = "none") const;
};

struct ScoreOptions {
  /// Resamples for standard errors that have no formula, as lm-eval draws them; 0: no standard error.
  std::int64_t bootstrap_iterations = 100'000;
};

/// Judges answers: for each document one answer to each of its requests.  Throws DataError for a value that
/// Python would refuse.
TaskScores score(const PreparedTask& task, std::span<const std::vector<Answer>> answers,
                 const ScoreOptions& options = {});

/// Results in the form of lm-eval: results, configs, versions, n-shot, higher_is_better, n-samples.
base::Json results_json(std::span<const PreparedTask> tasks, std::span<const TaskScores> scores);

/// One line for each filter and document, with the keys of lm-eval's samples: doc_id, doc, target, arguments,
/// resps, filtered_resps, filter, metrics, and each metric by its name.
std::vector<base::Json> sample_lines(const PreparedTask& task, std::span<const std::vector<Answer>> answers,
                                     const TaskScores& scores);

}  // namespace retort::tasks
