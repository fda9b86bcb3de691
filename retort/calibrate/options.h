#pragma once
// What a recipe may say about calibration text and what is measured on it.

#include <cstdint>

#include "retort/base/words.h"

namespace retort::calibrate {

/// f = perplexity * delta log perplexity + kl * KL(teacher || candidate), temperature 1, mean over sources.
struct ObjectiveWeights {
  double perplexity = 1.0;
  double kl = 1.0;
};

/// The score that ranks channels, KV groups and hidden features; see importance.h.
enum class ChannelRanking { wanda, activation, fluctuation, minitron, taylor, obs };
constexpr auto words_of(ChannelRanking) {
  return base::words<ChannelRanking::obs>("wanda", "activation", "fluctuation", "minitron", "taylor", "obs");
}

struct ProfileOptions {
  std::int64_t calibration_tokens = 131072;  ///< sum over all sources
  std::int64_t sequence_length = 512;
  std::uint64_t seed = 0;
};

}  // namespace retort::calibrate
