#pragma once
// Whether two tokenizers mean the same by their ids.

#include <cstdint>
#include <optional>
#include <string>

#include "retort/text/tokenizer.h"

namespace retort::text {

struct TokenDifference {
  std::int32_t id = 0;
  std::optional<std::string> first, second;  ///< bytes that the id stands for; empty: it names no token
};

/// The first id that does not stand for the same bytes in both, as Tokenizer::token_bytes() has them. Merges,
/// normalizers and what is special may differ: models see ids.
std::optional<TokenDifference> first_difference(const Tokenizer& first, const Tokenizer& second);

}  // namespace retort::text
