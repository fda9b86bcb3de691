#pragma once
// Values of documents as one value, and how sure that is.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "retort/tasks/scores.h"

namespace retort::tasks {

/// As the aggregation of this name in lm-eval; sums in the order of the documents.  `values` is not empty.
/// Throws DataError where it is not defined, with `where`.
double aggregate(Aggregation aggregation, std::span<const DocumentValue> values, const std::string& where);

/// As stderr_for_metric of lm-eval: of a mean by its formula with n - 1; of a median, nanmean, perplexity, f1
/// and Matthews correlation by a bootstrap whose draws are those of CPython's Random(0), Random(1), ..., 1000
/// resamples each.  Nothing for other aggregations, for a single document, and without iterations.
std::optional<double> standard_error(Aggregation aggregation, std::span<const DocumentValue> values,
                                     std::int64_t iterations);

/// As exact_match of lm-eval for one answer and one target.  Throws DataError with `where`.
bool is_exact_match(const ExactMatchOptions& options, std::string answer, std::string target,
                    const std::string& where);

}  // namespace retort::tasks
