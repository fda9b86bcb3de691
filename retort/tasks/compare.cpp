#include "retort/tasks/compare.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "retort/base/error.h"
#include "retort/base/random.h"

namespace retort::tasks {
namespace {

using base::DataError;
using base::Json;
using base::require;

constexpr std::size_t kLeastDocuments = 8;
constexpr std::array kAccuracies{Metric::acc, Metric::acc_norm, Metric::acc_bytes, Metric::acc_mutual_info,
                                 Metric::exact_match};

// Right choices of all, averaged over documents; nothing where answers are no choices.
std::vector<double> chances(const PreparedTask& task) {
  std::vector<double> chances;
  if (task.task.output_type != OutputType::multiple_choice) return chances;
  for (const auto& document : task.documents) {
    auto right = document.gold.indices;
    std::sort(right.begin(), right.end());
    right.erase(std::unique(right.begin(), right.end()), right.end());
    chances.push_back(static_cast<double>(right.size()) / static_cast<double>(document.choices.size()));
  }
  return chances;
}

// A metric of both models: what each document gives to the sums.
struct Pair {
  Comparison comparison;
  std::vector<std::array<double, 3>> terms;  ///< student, teacher and chance of each document
  std::vector<double> ratios, above;         ///< of each resample
};

struct Ratio {
  std::optional<double> value;
  std::string reason;
};

Ratio plain_ratio(double student, double teacher) {
  if (teacher > 0) return {student / teacher, ""};
  return {std::nullopt, "the teacher has no answer right"};
}
Ratio ratio_above(double student, double teacher, double chance) {
  if (teacher > chance) return {(student - chance) / (teacher - chance), ""};
  return {std::nullopt, "the teacher is not above chance"};
}

Pair pair_of(const PreparedTask& task, const MetricScore& student, const MetricScore& teacher) {
  Pair pair;
  Comparison& out = pair.comparison;
  out.task = task.task.name;
  out.metric = base::word(student.metric);
  out.filter = student.filter;
  out.num_documents = std::ssize(student.values);
  const auto chance = chances(task);
  const auto count = static_cast<double>(student.values.size());
  for (std::size_t i = 0; i < student.values.size(); ++i)
    pair.terms.push_back({student.values[i].value, teacher.values[i].value, chance.empty() ? 0 : chance[i]});
  std::array<double, 3> sums{};
  for (const auto& term : pair.terms)
    for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += term[j];
  out.student = sums[0] / count;
  out.teacher = sums[1] / count;
  if (!chance.empty()) out.chance = sums[2] / count;
  return pair;
}

// Log of the probability of k of n fair coins.
double log_binomial(std::int64_t n, std::int64_t k) {
  const auto of = [](std::int64_t x) { return std::lgamma(static_cast<double>(x) + 1); };
  return of(n) - of(k) - of(n - k) - static_cast<double>(n) * std::log(2.0);
}

McNemar mcnemar_of(const std::vector<std::array<double, 3>>& terms) {
  McNemar test;
  for (const auto& term : terms) {
    test.student_only += term[0] > term[1] ? 1 : 0;
    test.teacher_only += term[1] > term[0] ? 1 : 0;
  }
  const auto sum = test.student_only + test.teacher_only,
             fewer = std::min(test.student_only, test.teacher_only);
  double tail = 0;
  for (std::int64_t k = 0; k <= fewer; ++k) tail += std::exp(log_binomial(sum, k));
  test.p_value = std::min(1.0, 2 * tail);
  return test;
}

void resample(std::vector<Pair>& pairs, const std::string& task, const CompareOptions& options) {
  const auto count = pairs.front().terms.size();
  base::Random random(options.seed, base::stream_of("recovery of " + task));
  std::vector<std::size_t> places(count);
  for (std::int64_t i = 0; i < options.resamples; ++i) {
    for (auto& at : places) at = static_cast<std::size_t>(random.next_below(count));
    for (Pair& pair : pairs) {
      std::array<double, 3> sums{};
      for (const auto at : places)
        for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += pair.terms[at][j];
      if (const auto ratio = plain_ratio(sums[0], sums[1]); ratio.value) pair.ratios.push_back(*ratio.value);
      if (const auto ratio = ratio_above(sums[0], sums[1], sums[2]); ratio.value)
        pair.above.push_back(*ratio.value);
    }
  }
}

double quantile(const std::vector<double>& sorted, double level) {
  const double place = level * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

// A resample without a ratio has none that is finite, so that there is no interval.
Recovery recovery_of(const Ratio& ratio, std::vector<double> resampled, std::int64_t resamples, bool few) {
  Recovery out{ratio.value, std::nullopt, std::nullopt, ratio.reason};
  if (!ratio.value) return out;
  if (few) {
    out.reason = "there are fewer than 8 documents";
  } else if (std::ssize(resampled) < resamples || resampled.empty()) {
    out.reason = "the teacher is too near to chance for an interval";
  } else {
    std::sort(resampled.begin(), resampled.end());
    out.low = quantile(resampled, 0.025);
    out.high = quantile(resampled, 0.975);
  }
  return out;
}

void finish(Pair& pair, std::int64_t resamples) {
  Comparison& out = pair.comparison;
  const bool few = pair.terms.size() < kLeastDocuments;
  out.recovery = recovery_of(plain_ratio(out.student, out.teacher), std::move(pair.ratios), resamples, few);
  const Ratio above =
      out.chance ? ratio_above(out.student, out.teacher, *out.chance)
                 : Ratio{std::nullopt, "answers are generated or have no choices, so chance is not known"};
  out.above_chance = recovery_of(above, std::move(pair.above), resamples, few);
  const bool binary = std::all_of(pair.terms.begin(), pair.terms.end(), [](const auto& term) {
    return (term[0] == 0 || term[0] == 1) && (term[1] == 0 || term[1] == 1);
  });
  if (binary) out.mcnemar = mcnemar_of(pair.terms);
}

Json to_json(const Recovery& recovery) {
  const auto or_null = [](const std::optional<double>& number) { return number ? Json(*number) : Json(); };
  Json out = {{"value", or_null(recovery.value)},
              {"interval", recovery.low ? Json::array({*recovery.low, *recovery.high}) : Json()}};
  if (!recovery.reason.empty()) out["reason"] = recovery.reason;
  return out;
}

}  // namespace

std::vector<Comparison> compare(const PreparedTask& task, const TaskScores& student,
                                const TaskScores& teacher, const CompareOptions& options) {
  require<DataError>(student.task == teacher.task && student.num_documents == teacher.num_documents &&
                         student.num_documents == std::ssize(task.documents),
                     task.task.name, ": the student was judged on ", student.num_documents,
                     " documents and the teacher on ", teacher.num_documents, "; judge both on the same.");
  std::vector<Pair> pairs;
  for (const auto& score : student.metrics) {
    const auto* other = teacher.find(score.metric, score.filter);
    const bool accuracy =
        std::find(kAccuracies.begin(), kAccuracies.end(), score.metric) != kAccuracies.end();
    const bool mean = score.aggregation == Aggregation::mean || score.aggregation == Aggregation::nanmean;
    if (other != nullptr && accuracy && mean) pairs.push_back(pair_of(task, score, *other));
  }
  std::vector<Comparison> comparisons;
  if (pairs.empty()) return comparisons;
  if (pairs.front().terms.size() >= kLeastDocuments) resample(pairs, task.task.name, options);
  for (Pair& pair : pairs) {
    finish(pair, options.resamples);
    comparisons.push_back(std::move(pair.comparison));
  }
  return comparisons;
}

Json to_json(const std::vector<Comparison>& comparisons) {
  Json list = Json::array();
  for (const auto& one : comparisons) {
    Json out = {{"task", one.task},
                {"metric", one.metric},
                {"filter", one.filter},
                {"documents", one.num_documents},
                {"student", one.student},
                {"teacher", one.teacher},
                {"chance", one.chance ? Json(*one.chance) : Json()},
                {"recovery", to_json(one.recovery)},
                {"recovery_above_chance", to_json(one.above_chance)}};
    if (one.mcnemar)
      out["mcnemar"] = {{"student_only", one.mcnemar->student_only},
                        {"teacher_only", one.mcnemar->teacher_only},
                        {"p_value", one.mcnemar->p_value}};
    list.push_back(std::move(out));
  }
  return list;
}

}  // namespace retort::tasks
