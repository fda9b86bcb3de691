#pragma once
// What a model came to on evaluation tasks, read from results in lm-eval's form.

#include <optional>
#include <string>
#include <vector>

#include "retort/report/fields.h"
#include "retort/report/numbers.h"

namespace retort::report {

/// A metric of a task, and beside the teacher where it was compared.
struct TaskScore {
  std::string task, metric, filter;
  Number value = {}, standard_error = {};
  const base::Json* comparison = nullptr;  ///< lives as long as the results
};

/// In the order of the results.
std::vector<TaskScore> task_scores(const base::Json& model);

/// A share of all documents, which is shown as a percentage.
bool is_accuracy(const TaskScore& score);
/// "52.6 %", or a perplexity.
std::string value_of(const TaskScore& score);
/// "1.4", in the unit of the value; empty where there is none.
std::string error_of(const TaskScore& score);
/// "95.1 % (92.0 to 98.3)" of a ratio with its interval; a dash where there is none.
std::string ratio_of(const TaskScore& score, std::string_view ratio);
/// The two-sided p-value of McNemar's test.
std::string p_value_of(const TaskScore& score);

}  // namespace retort::report
