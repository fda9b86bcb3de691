#include "retort/bench/run_measures.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "retort/base/error.h"

namespace retort::bench {
namespace {

double quantile(std::vector<double>& values, double share) {
  std::ranges::sort(values);
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], place - static_cast<double>(below));
}

// Where texts take turns, each is counted from the end of the one before.
std::vector<double> first_tokens(const RunTimes& times, bool one_at_a_time) {
  std::vector<double> seconds;
  double begin = 0;
  for (const auto& text : times.tokens) {
    seconds.push_back(text.front() - begin);
    if (one_at_a_time) begin = text.back();
  }
  return seconds;
}

std::vector<double> steps_between(const RunTimes& times) {
  std::vector<double> seconds;
  for (const auto& text : times.tokens)
    for (std::size_t token = 1; token < text.size(); ++token)
      seconds.push_back(text[token] - text[token - 1]);
  return seconds;
}

}  // namespace

RunMeasures measures_of(const RunTimes& times, bool one_at_a_time) {
  std::size_t tokens = 0;
  double end = 0;
  for (const auto& text : times.tokens) {
    base::ensure(!text.empty(), "every text of a run has a token");
    tokens += text.size();
    end = std::max(end, text.back());
  }
  const auto texts = static_cast<double>(times.tokens.size()), made = static_cast<double>(tokens);
  RunMeasures measures;
  const auto set = [&](Measure measure, double value) {
    measures[static_cast<std::size_t>(measure)] = value;
  };
  set(Measure::tokens_per_second, made / end);
  set(Measure::prompts_per_second, texts / end);
  auto first = first_tokens(times, one_at_a_time);
  set(Measure::first_token_seconds, std::accumulate(first.begin(), first.end(), 0.0) / texts);
  set(Measure::first_token_seconds_p95, quantile(first, 0.95));
  if (auto between = steps_between(times); !between.empty()) {
    set(Measure::between_tokens_seconds, quantile(between, 0.5));
    set(Measure::between_tokens_seconds_p95, quantile(between, 0.95));
  }
  if (times.joules) set(Measure::joules_per_token, *times.joules / made);
  return measures;
}

}  // namespace retort::bench
