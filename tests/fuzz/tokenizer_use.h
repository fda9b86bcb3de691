#pragma once
// A tokenizer at work, however it came.

#include <algorithm>

#include "fuzz/harness.h"
#include "retort/text/tokenizer.h"

namespace retort::fuzz {

/// Reads a tokenizer from `path` and has it encode and decode fixed texts and `text`.
inline void use_tokenizer(const base::Path& path, std::string_view text) {
  constexpr std::string_view kTexts[] = {
      "Hello wor\xC3\xA9ld  \n\n 123 don't <s></s>a\xE2\x96\x81"
      "b\xF0\x9F\x98\x80\r\n\t\xFF\xC3",
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "", " ", "ab <s>ab"};
  taken([&] {
    const auto tokenizer = text::Tokenizer::from_file(path);
    const auto round_trip = [&](std::string_view one) {
      const auto ids = tokenizer.encode(one);
      for (const auto id : ids) require(id >= 0 && id < tokenizer.vocab_size(), "an id is of the vocabulary");
      (void)tokenizer.decode(ids);
      (void)tokenizer.decode(ids, false);
    };
    for (const auto one : kTexts) round_trip(one);
    round_trip(text);
    for (std::int32_t id = 0; id < std::min<std::int64_t>(tokenizer.vocab_size(), 64); ++id) {
      (void)tokenizer.token_bytes(id);
      taken([&] { (void)tokenizer.id_to_token(id); });
    }
  });
}

}  // namespace retort::fuzz
