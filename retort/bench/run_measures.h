#pragma once
// What a run of texts that were made together says of a model's speed.

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "retort/base/words.h"

namespace retort::bench {

/// When each text got each of its tokens, seconds after the beginning of the run.
struct RunTimes {
  std::vector<std::vector<double>> tokens = {};
  std::optional<double> joules = {};  ///< that the machine took meanwhile
};

/// Their words are keys of JSON.
enum class Measure {
  tokens_per_second,           ///< new ones
  prompts_per_second,          ///< answered
  first_token_seconds,         ///< mean over texts
  first_token_seconds_p95,     ///< of texts
  between_tokens_seconds,      ///< median over the steps of all texts
  between_tokens_seconds_p95,  ///< of them
  joules_per_token
};
constexpr auto words_of(Measure) {
  return base::words<Measure::joules_per_token>(
      "tokens_per_second", "prompts_per_second", "first_token_seconds", "first_token_seconds_p95",
      "between_tokens_seconds", "between_tokens_seconds_p95", "joules_per_token");
}
inline constexpr std::size_t kMeasures = words_of(Measure{}).size();

/// By measure; empty where the run does not say: of texts of one token each, without energy.
using RunMeasures = std::array<std::optional<double>, kMeasures>;

/// `one_at_a_time`: a text begins where the text before it ends, and its first token is counted from there.
/// Else all wait from the beginning of the run, so that queueing counts.  Every text has a token.
RunMeasures measures_of(const RunTimes& times, bool one_at_a_time);

inline const std::optional<double>& value_of(const RunMeasures& measures, Measure measure) {
  return measures[static_cast<std::size_t>(measure)];
}

}  // namespace retort::bench
