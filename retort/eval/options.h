#pragma once
// What a recipe or the command line may say about evaluation and generation.

#include <cstdint>
#include <string>
#include <vector>

#include "retort/base/words.h"

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
  std::int64_t max_new_tokens = 40;
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

}  // namespace retort::eval
