#include "retort/tasks/scores.h"

#include <algorithm>
#include <cmath>

#include "retort/base/error.h"
#include "retort/chat/code_points.h"
#include "retort/io/quote.h"
#include "retort/tasks/metrics.h"

namespace retort::tasks {
namespace {

using base::DataError;
using base::Json;
using base::require;

// The place of the largest; the first of equals, and the first that is no number, as numpy.argmax has it.
std::size_t largest(const std::vector<double>& numbers) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (std::isnan(numbers[i])) return i;
    if (numbers[i] > numbers[best]) best = i;
  }
  return best;
}

std::vector<double> divided(std::vector<double> numbers, const std::vector<std::string>& choices,
                            std::size_t (*length)(std::string_view)) {
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] /= static_cast<double>(length(choices[i]));
  return numbers;
}

std::vector<double> softmax(std::vector<double> numbers) {
  const double most = *std::max_element(numbers.begin(), numbers.end());
  double sum = 0;
  for (double& one : numbers) sum += one = std::exp(one - most);
  for (double& one : numbers) one /= sum;
  return numbers;
}

class Judge {
 public:
  Judge(const PreparedTask& task, const PreparedDocument& document, const std::vector<Answer>& answers)
      : task_(task),
        document_(document),
        answers_(answers),
        where_(base::join(task.task.name, ": document ", document.id)) {
    require<DataError>(answers.size() == document.requests.size(), where_, ": has ", answers.size(),
                       " answers to ", document.requests.size(), " requests.");
    if (task.task.output_type == OutputType::multiple_choice) read_choices();
  }

  DocumentValue value(const MetricOptions& metric, const Json& filtered) const {
    switch (task_.task.output_type) {
      case OutputType::loglikelihood:
        return plain(metric.metric == Metric::acc ? (answers_[0].is_greedy ? 1 : 0)
                                                  : answers_[0].log_likelihood);
      case OutputType::loglikelihood_rolling:
        return rolling(metric.metric);
      case OutputType::multiple_choice:
        return of_choices(metric.metric);
      case OutputType::generate_until:
        return plain(generated(metric, filtered) ? 1 : 0);
    }
    return {};
  }

 private:
  static DocumentValue plain(double value) {
    DocumentValue out;
    out.value = value;
    return out;
  }

  DocumentValue rolling(Metric metric) const {
    DocumentValue out = plain(answers_[0].log_likelihood);
    out.weight = static_cast<double>(metric == Metric::word_perplexity ? document_.words : document_.bytes);
    return out;
  }

  void read_choices() {
    const auto count = document_.choices.size();
    for (std::size_t i = 0; i < count; ++i) likelihoods_.push_back(answers_[i].log_likelihood);
    for (std::size_t i = count; i < answers_.size(); ++i)
      informations_.push_back(likelihoods_[i - count] - answers_[i].log_likelihood);
  }

  bool is_right(std::size_t choice) const {
    const auto& right = document_.gold.indices;
    return std::find(right.begin(), right.end(), static_cast<std::int64_t>(choice)) != right.end();
  }

  DocumentValue of_choices(Metric metric) const {
    const auto right = [&](const std::vector<double>& numbers) {
      return plain(is_right(largest(numbers)) ? 1 : 0);
    };
    switch (metric) {
      case Metric::acc:
        return right(likelihoods_);
      case Metric::acc_norm:
        return right(divided(likelihoods_, document_.choices, chat::characters_in));
      case Metric::acc_bytes:
        return right(
            divided(likelihoods_, document_.choices, [](std::string_view text) { return text.size(); }));
      case Metric::acc_mutual_info:
        // lm-eval compares with a list, and so finds no answer right, where there are several.
        return document_.gold.several ? plain(0) : right(informations_);
      case Metric::exact_match:
        return plain(std::any_of(document_.gold.indices.begin(), document_.gold.indices.end(),
                                 [&](auto i) { return answers_[static_cast<std::size_t>(i)].is_greedy; })
                         ? 1
                         : 0);
      default:
        return of_classes(metric);
    }
  }

  DocumentValue of_classes(Metric metric) const {
    require<DataError>(!document_.gold.several, where_, ": has several right answers, which ",
                       base::word(metric), " does not take; leave the metric out.");
    DocumentValue out;
    out.gold = document_.gold.indices[0];
    out.chosen = static_cast<std::int64_t>(largest(likelihoods_));
    if (metric == Metric::brier_score) out.probabilities = softmax(likelihoods_);
    return out;
  }

  bool generated(const MetricOptions& metric, const Json& filtered) const {
    require<DataError>(filtered.is_string(), where_, ": a filter makes ", io::shown(filtered),
                       " of the answer, expected a text.");
    const auto& targets = document_.gold.texts;
    return std::any_of(targets.begin(), targets.end(), [&](const std::string& target) {
      return is_exact_match(metric.exact_match, filtered.get<std::string>(), target, where_);
    });
  }

  const PreparedTask& task_;
  const PreparedDocument& document_;
  const std::vector<Answer>& answers_;
  std::string where_;
  std::vector<double> likelihoods_;   ///< of each choice
  std::vector<double> informations_;  ///< likewise, without what the choice has on its own
};

// What each chain makes of each answer; of answers that are likelihoods, nothing.
std::vector<std::vector<Json>> filtered_answers(const PreparedTask& task, const FilterChain& chain,
                                                std::span<const std::vector<Answer>> answers) {
  std::vector<std::vector<Json>> all;
  const bool generated = task.task.output_type == OutputType::generate_until;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    auto& of_document = all.emplace_back();
    for (const Answer& answer : answers[i])
      of_document.push_back(
          generated
              ? filtered(chain, answer.text, base::join(task.task.name, ": document ", task.documents[i].id))
              : Json());
  }
  return all;
}

MetricScore scored(const PreparedTask& task, const MetricOptions& metric, const FilterChain& chain,
                   std::span<const std::vector<Answer>> answers,
                   const std::vector<std::vector<Json>>& filtered, const ScoreOptions& options) {
  MetricScore score;
  score.metric = metric.metric;
  score.aggregation = metric.aggregation;
  score.higher_is_better = metric.higher_is_better;
  score.filter = chain.name;
  for (std::size_t i = 0; i < answers.size(); ++i)
    score.values.push_back(Judge(task, task.documents[i], answers[i]).value(metric, filtered[i].at(0)));
  score.value = aggregate(metric.aggregation, score.values, task.task.name);
  score.standard_error = standard_error(metric.aggregation, score.values, options.bootstrap_iterations);
  return score;
}

}  // namespace

const MetricScore* TaskScores::find(Metric metric, std::string_view filter) const {
  for (const auto& score : metrics)
    if (score.metric == metric && score.filter == filter) return &score;
  return nullptr;
}

TaskScores score(const PreparedTask& task, std::span<const std::vector<Answer>> answers,
                 const ScoreOptions& options) {
  require<DataError>(answers.size() == task.documents.size() && !answers.empty(), task.task.name,
                     ": has answers to ", answers.size(), " documents, expected ", task.documents.size(),
                     ".");
  TaskScores scores;
  scores.task = task.task.name;
  scores.num_documents = std::ssize(answers);
  for (const auto& chain : task.task.filters) {
    auto filtered = filtered_answers(task, chain, answers);
    for (const auto& metric : task.task.metrics)
      scores.metrics.push_back(scored(task, metric, chain, answers, filtered, options));
    scores.filtered.emplace_back(chain.name, std::move(filtered));
  }
  return scores;
}

}  // namespace retort::tasks
