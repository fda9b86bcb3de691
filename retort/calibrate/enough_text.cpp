#include "retort/calibrate/enough_text.h"

#include <algorithm>

#include "retort/base/error.h"

namespace retort::calibrate {

std::int64_t text_tokens_for(std::int64_t inputs, std::int64_t tokens_of_an_input, const TextShares& shares) {
  const double needed = static_cast<double>(tokens_of_an_input * inputs) *
                        (shares.fitted + shares.choosing + shares.judging) / shares.fitted;
  return std::max(kLeastTextTokens, static_cast<std::int64_t>(needed));
}

std::int64_t num_tokens(const SourceText& source) {
  std::int64_t tokens = 0;
  for (const auto& sequence : source.sequences) tokens += std::ssize(sequence.ids);
  return tokens;
}

std::int64_t num_tokens(const std::vector<SourceText>& side) {
  std::int64_t tokens = 0;
  for (const auto& source : side) tokens += num_tokens(source);
  return tokens;
}

std::optional<std::string> warning_of_little_text(const Fit& fit, std::int64_t enough_tokens) {
  if (fit.tokens >= kTooFewTokensOfAnInput * fit.inputs) return {};
  return base::join(fit.stage, ": layers of ", fit.inputs, " inputs are fitted to ", fit.tokens,
                    " tokens, expected at least ", kTooFewTokensOfAnInput, " tokens of each input; ",
                    fit.consequence, ": set calibration_tokens to ", enough_tokens, ".");
}

}  // namespace retort::calibrate
