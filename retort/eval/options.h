#pragma once
// What a recipe or the command line may say about evaluation and generation.

#include <cstdint>
#include <string>
#include <vector>

#include "retort/base/json.h"
#include "retort/base/words.h"
#include "retort/tasks/options.h"

namespace retort::eval {

/// How text is cut for evaluation.
enum class Windowing {
  fixed,   ///< the documents of a source joined, cut every `context` tokens: what papers on pruning call
           ///< perplexity
  rolling  ///< each document alone, every token of it predicted exactly once, the first from a begin-of-text
           ///< token, the last window reaching back so that it is full too: lm-eval's loglikelihood_rolling
};
constexpr auto words_of(Windowing) {
  return base::words<Windowing::rolling>("fixed", "rolling");
}

struct EvaluateOptions {
  Windowing windows = Windowing::fixed;
  std::int64_t context = 512;             ///< tokens of a window; at most what the model was made for
  std::int64_t tokens = 0;                ///< per source, 0: all of the held-out part
  bool seen = false;                      ///< the models may have learned from the text in the same run
  std::vector<std::string> prompts = {};  ///< texts generated from, for the report
  std::vector<base::Json> chats = {};     ///< lists of messages that each model answers, for the report
  std::int64_t max_new_tokens = 40;
  tasks::TaskOptions tasks = {};
};

/// How the next token is drawn.
struct Sampling {
  double temperature = 0;         ///< 0: greedy
  std::int64_t top_k = 0;         ///< only the most likely and their equals; 0: all
  double top_p = 1;               ///< only the most likely that together have this share
  double min_p = 0;               ///< only those so many times as likely as the most likely one
  double repetition_penalty = 1;  ///< of ids that the text has; 1: none
  std::uint64_t seed = 0;
};

/// A bound on the time in which a model gives texts a token.  At most one of the first three is set.
struct TimeTarget {
  double latency = 0;            ///< share of the time that another model takes, in (0, 1)
  double milliseconds = 0;       ///< of a token
  double tokens_per_second = 0;  ///< of all texts of a batch
  /// Of what the time is taken.
  std::int64_t batch = 1, context = 512;
  std::string dtype = "auto";  ///< as of scoring and generation

  bool is_given() const { return latency > 0 || milliseconds > 0 || tokens_per_second > 0; }
  /// Seconds of a token; `whole_seconds`: that the model takes of which latency is a share.
  double seconds(double whole_seconds) const {
    if (latency > 0) return latency * whole_seconds;
    return milliseconds > 0 ? milliseconds / 1000 : static_cast<double>(batch) / tokens_per_second;
  }
};

}  // namespace retort::eval
