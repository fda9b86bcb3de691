#pragma once
// A student beside its teacher on the same documents: what of the teacher's accuracy it recovers, how sure
// that is, and whether the two differ.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "retort/base/json.h"
#include "retort/tasks/scores.h"

namespace retort::tasks {

/// A ratio with its 95 % interval; without a value for a reason.
struct Recovery {
  std::optional<double> value, low, high;
  std::string reason;  ///< why there is no value, or no interval
};

/// McNemar's exact test of documents that one alone has right.
struct McNemar {
  std::int64_t student_only = 0, teacher_only = 0;
  double p_value = 1;  ///< two-sided
};

struct Comparison {
  std::string task, metric, filter;
  double student = 0, teacher = 0;
  std::optional<double> chance;    ///< of random choices, the mean over documents; absent: not known
  Recovery recovery;               ///< student / teacher
  Recovery above_chance;           ///< (student - chance) / (teacher - chance)
  std::optional<McNemar> mcnemar;  ///< of values that are 0 or 1
  std::int64_t num_documents = 0;
};

struct CompareOptions {
  std::int64_t resamples = 10'000;
  std::uint64_t seed = 1;
};

/// Compares each metric of accuracy that both have (acc, acc_norm, acc_bytes, acc_mutual_info, exact_match).
/// The intervals are percentiles of a paired bootstrap over documents; a task's draws depend on the seed, its
/// name and its number of documents alone.  Throws DataError where the two were judged on different
/// documents.  Sources: Efron and Tibshirani 1993, chapter 13; McNemar 1947.
std::vector<Comparison> compare(const PreparedTask& task, const TaskScores& student,
                                const TaskScores& teacher, const CompareOptions& options = {});

/// An object for each comparison, with null and its reason where there is no value.
base::Json to_json(const std::vector<Comparison>& comparisons);

}  // namespace retort::tasks
