#pragma once
// How much calibration text is enough for what is fitted to a part of it.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "retort/calibrate/split_text.h"

namespace retort::calibrate {

/// Fitted tokens of each input of a layer; with fewer a fit finds mostly chance.
inline constexpr std::int64_t kTooFewTokensOfAnInput = 8;
/// Of all text, however narrow a model is: sides of an eighth need documents to tell results apart.
inline constexpr std::int64_t kLeastTextTokens = 32'768;

/// Tokens of a text whose fitted side has `tokens_of_an_input` for each of `inputs`; never fewer than
/// kLeastTextTokens.
inline std::int64_t text_tokens_for(std::int64_t inputs, std::int64_t tokens_of_an_input,
                                    const TextShares& shares) {
  const double needed = static_cast<double>(tokens_of_an_input * inputs) *
                        (shares.fitted + shares.choosing + shares.judging) / shares.fitted;
  return std::max(kLeastTextTokens, static_cast<std::int64_t>(needed));
}

/// Tokens of all sequences.
inline std::int64_t num_tokens(const SourceText& source) {
  std::int64_t tokens = 0;
  for (const auto& sequence : source.sequences) tokens += std::ssize(sequence.ids);
  return tokens;
}
inline std::int64_t num_tokens(const std::vector<SourceText>& side) {
  std::int64_t tokens = 0;
  for (const auto& source : side) tokens += num_tokens(source);
  return tokens;
}

}  // namespace retort::calibrate
