#pragma once
// How much calibration text is enough for what is fitted to a part of it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "retort/calibrate/split_text.h"

namespace retort::calibrate {

/// Fitted tokens of each input of a layer; with fewer a fit finds mostly chance.
inline constexpr std::int64_t kTooFewTokensOfAnInput = 8;
/// Of all text, however narrow a model is: sides of an eighth need documents to tell results apart.
inline constexpr std::int64_t kLeastTextTokens = 32'768;

/// Tokens of a text whose fitted side has `tokens_of_an_input` for each of `inputs`; never fewer than
/// kLeastTextTokens.
std::int64_t text_tokens_for(std::int64_t inputs, std::int64_t tokens_of_an_input, const TextShares& shares);

/// Tokens of all sequences.
std::int64_t num_tokens(const SourceText& source);
std::int64_t num_tokens(const std::vector<SourceText>& side);

/// A fit of a stage, whose widest layer has `inputs`.
struct Fit {
  const char* stage;        ///< that speaks
  const char* consequence;  ///< of too little text
  std::int64_t tokens = 0;  ///< that it is made from
  std::int64_t inputs = 0;
};
/// A sentence where a fit has too few tokens, with the `enough_tokens` of calibration_tokens that would do.
std::optional<std::string> warning_of_little_text(const Fit& fit, std::int64_t enough_tokens);

}  // namespace retort::calibrate
