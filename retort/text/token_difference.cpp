#include "retort/text/token_difference.h"

#include <algorithm>

namespace retort::text {

std::optional<TokenDifference> first_difference(const Tokenizer& first, const Tokenizer& second) {
  const auto ids = static_cast<std::int32_t>(std::max(first.vocab_size(), second.vocab_size()));
  for (std::int32_t id = 0; id < ids; ++id) {
    auto of_first = first.token_bytes(id), of_second = second.token_bytes(id);
    if (of_first != of_second) return TokenDifference{id, std::move(of_first), std::move(of_second)};
  }
  return std::nullopt;
}

}  // namespace retort::text
