#pragma once
// Splitting text into pieces: the known pre-tokenizer patterns as hand-written scanners (a file's own regular
// expression is never run), and the behaviours that HF tokenizers gives to a literal separator.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "retort/text/run_pattern.h"

namespace retort::text {

/// Receives one piece; pieces are never empty.
using PieceSink = std::function<void(std::string_view)>;

/// Patterns that we know.  `deepseek3` and `spaces_at_end` leave characters between their matches; the others
/// match every character.
enum class KnownPattern { gpt2, llama3, qwen2, tekken, o200k, deepseek3, spaces_at_end };

/// The name of a pattern, as in KnownPattern.
std::string_view name_of(KnownPattern pattern);
bool matches_everything(KnownPattern pattern);

/// The pattern whose regular expression is exactly `regex`; nothing if we do not know it.
std::optional<KnownPattern> recognise(std::string_view regex);

/// Cuts `text` into the matches of `pattern` and what lies between them, from left to right, in linear time.
void split_by(KnownPattern pattern, std::string_view text, const PieceSink& sink);

void split_by(const RunPattern& pattern, std::string_view text, const PieceSink& sink);

/// Cuts out numeric characters: each on its own, or runs of them.
void split_digits(std::string_view text, bool individual, const PieceSink& sink);

/// What becomes of a separator.
enum class Separator { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// Cuts `text` at every occurrence of `literal` (not empty).
void split_at(std::string_view literal, Separator behaviour, std::string_view text, const PieceSink& sink);

}  // namespace retort::text
