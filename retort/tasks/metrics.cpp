#include "retort/tasks/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "retort/base/error.h"
#include "retort/base/parallel.h"
#include "retort/chat/code_points.h"
#include "retort/chat/template_limits.h"
#include "retort/io/quote.h"
#include "retort/tasks/python_random.h"

namespace retort::tasks {
namespace {

using base::DataError;
using base::require;
using Values = std::span<const DocumentValue>;
// The documents in an order, some of them more than once.
using Places = std::span<const std::uint32_t>;

double mean_of(Values values, Places places) {
  double sum = 0;
  for (const auto at : places) sum += values[at].value;
  return sum / static_cast<double>(places.size());
}

double nanmean_of(Values values, Places places) {
  double sum = 0;
  std::size_t count = 0;
  for (const auto at : places) {
    if (std::isnan(values[at].value)) continue;
    sum += values[at].value;
    ++count;
  }
  return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(count);
}

double median_of(Values values, Places places) {
  std::vector<double> sorted;
  for (const auto at : places) sorted.push_back(values[at].value);
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

double weighted_mean(Values values, Places places) {
  double sum = 0, weights = 0;
  for (const auto at : places) {
    sum += values[at].value;
    weights += values[at].weight;
  }
  return sum / weights;
}

// Of the class 1; 0 where there is nothing of it.
double f1_of(Values values, Places places) {
  std::int64_t both = 0, sum = 0;
  for (const auto at : places) {
    both += values[at].gold == 1 && values[at].chosen == 1 ? 1 : 0;
    sum += (values[at].gold == 1 ? 1 : 0) + (values[at].chosen == 1 ? 1 : 0);
  }
  return sum == 0 ? 0 : 2 * static_cast<double>(both) / static_cast<double>(sum);
}

// Source: Gorodkin 2004, of any number of classes.
double correlation_of(Values values, Places places) {
  std::map<std::int64_t, std::pair<double, double>> counts;  // of each class: right answers and chosen ones
  double right = 0;
  for (const auto at : places) {
    counts[values[at].gold].first += 1;
    counts[values[at].chosen].second += 1;
    right += values[at].gold == values[at].chosen ? 1 : 0;
  }
  const auto total = static_cast<double>(places.size());
  double joint = right * total, chosen = total * total, gold = total * total;
  for (const auto& [unused, count] : counts) {
    joint -= count.first * count.second;
    gold -= count.first * count.first;
    chosen -= count.second * count.second;
  }
  return chosen * gold == 0 ? 0 : joint / std::sqrt(chosen * gold);
}

double brier_of(Values values, Places places) {
  double sum = 0;
  for (const auto at : places) {
    const auto& one = values[at];
    for (std::size_t i = 0; i < one.probabilities.size(); ++i) {
      const double away = one.probabilities[i] - (static_cast<std::int64_t>(i) == one.gold ? 1 : 0);
      sum += away * away;
    }
  }
  return sum / static_cast<double>(places.size());
}

double aggregated(Aggregation aggregation, Values values, Places places) {
  switch (aggregation) {
    case Aggregation::mean:
      return mean_of(values, places);
    case Aggregation::nanmean:
      return nanmean_of(values, places);
    case Aggregation::median:
      return median_of(values, places);
    case Aggregation::perplexity:
      return std::exp(-mean_of(values, places));
    case Aggregation::weighted_perplexity:
      return std::exp(-weighted_mean(values, places));
    case Aggregation::bits_per_byte:
      return -weighted_mean(values, places) / std::log(2.0);
    case Aggregation::f1:
      return f1_of(values, places);
    case Aggregation::matthews_corrcoef:
      return correlation_of(values, places);
    case Aggregation::brier_score:
      return brier_of(values, places);
  }
  return 0;
}

// What Python refuses.
void require_defined(Aggregation aggregation, Values values, const std::string& where) {
  if (aggregation == Aggregation::f1)
    for (const auto& one : values)
      require<DataError>(one.gold <= 1 && one.chosen <= 1, where,
                         ": f1 is that of two choices, and a document has more; leave f1 out.");
  if (aggregation == Aggregation::brier_score)
    for (const auto& one : values)
      require<DataError>(one.probabilities.size() == values[0].probabilities.size(), where,
                         ": brier_score needs as many choices in each document; leave it out.");
}

double sample_deviation(std::span<const double> numbers) {
  double sum = 0, squares = 0;
  for (const double one : numbers) sum += one;
  const double mean = sum / static_cast<double>(numbers.size());
  for (const double one : numbers) squares += (one - mean) * (one - mean);
  return std::sqrt(squares / static_cast<double>(numbers.size() - 1));
}

std::vector<std::uint32_t> all_places(std::size_t count) {
  std::vector<std::uint32_t> places(count);
  for (std::size_t i = 0; i < count; ++i) places[i] = static_cast<std::uint32_t>(i);
  return places;
}

double bootstrap_error(Aggregation aggregation, Values values, std::int64_t iterations) {
  const auto chunk = std::min<std::int64_t>(1000, iterations), chunks = iterations / chunk;
  std::vector<double> resampled(static_cast<std::size_t>(chunk * chunks));
  base::parallel_for(static_cast<std::size_t>(chunks), base::usable_processors(), [&](std::size_t i) {
    PythonRandom random(i);
    std::vector<std::uint32_t> places(values.size());
    for (std::int64_t j = 0; j < chunk; ++j) {
      for (auto& at : places) at = static_cast<std::uint32_t>(random.choice(values.size()));
      resampled[i * static_cast<std::size_t>(chunk) + static_cast<std::size_t>(j)] =
          aggregated(aggregation, values, places);
    }
  });
  return sample_deviation(resampled);
}

bool is_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

std::string simplified(const ExactMatchOptions& options, std::string text) {
  for (const auto& regex : options.regexes_to_ignore) text = regex.replaced(text, "");
  if (options.ignore_case) text = chat::to_lower(text);
  if (options.ignore_punctuation) std::erase_if(text, is_punctuation);
  if (options.ignore_numbers) std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

}  // namespace

double aggregate(Aggregation aggregation, Values values, const std::string& where) {
  require_defined(aggregation, values, where);
  return aggregated(aggregation, values, all_places(values.size()));
}

std::optional<double> standard_error(Aggregation aggregation, Values values, std::int64_t iterations) {
  if (values.size() < 2 || iterations < 1) return std::nullopt;
  switch (aggregation) {
    case Aggregation::mean: {
      std::vector<double> numbers;
      for (const auto& one : values) numbers.push_back(one.value);
      return sample_deviation(numbers) / std::sqrt(static_cast<double>(numbers.size()));
    }
    case Aggregation::nanmean:
    case Aggregation::median:
    case Aggregation::perplexity:
    case Aggregation::f1:
    case Aggregation::matthews_corrcoef:
      return bootstrap_error(aggregation, values, iterations);
    default:
      return std::nullopt;
  }
}

bool is_exact_match(const ExactMatchOptions& options, std::string answer, std::string target,
                    const std::string& where) {
  try {
    return simplified(options, std::move(answer)) == simplified(options, std::move(target));
  } catch (const chat::RegexFault& fault) {
    throw DataError(where + ": a pattern of regexes_to_ignore " + fault.reason + ".");
  } catch (const chat::TemplateFault& fault) {
    throw DataError(where + ": " + fault.reason + ".");
  }
}

}  // namespace retort::tasks
