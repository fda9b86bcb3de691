#pragma once
// The text of a tokenizer.json, written for a tokenizer that stands in another format.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "retort/base/json.h"
#include "retort/io/vocabulary.h"

namespace retort::io {

/// A token that is found in the text before anything else is done with it.
struct AddedToken {
  std::size_t id = 0;
  std::string content = {};
  bool single_word = false, lstrip = false, rstrip = false;
  bool normalized = false;  ///< found in the normalized text
  bool special = false;     ///< left out when ids become text
};

/// Control tokens and the unknown one, which are special, and those that a user defined.
std::vector<AddedToken> added_tokens_of(const Vocabulary& vocabulary);

/// What stands before the first and after the last token of a text.
struct Around {
  std::optional<AddedToken> bos = {}, eos = {};
};

/// How models of Mistral cut text.
extern const std::string_view kTekkenPattern;

/// How text becomes pieces and back; values of tokenizer.json.
struct Pipeline {
  base::Json normalizer = {}, pre_tokenizer = {}, decoder = {};
};

/// Whether digits become pieces of their own, before or after other cuts.
enum class SingleDigits { no, first, last };
/// Each of the patterns cuts the pieces further (none: the pattern of GPT-2), and their bytes are symbols.
Pipeline byte_level_pipeline(std::span<const std::string_view> patterns, SingleDigits digits, bool composed);
/// U+2581 stands for a space, and before a text with `prefix`; `bytes`: characters without a token become
/// bytes.
Pipeline sentencepiece_pipeline(bool prefix, bool bytes);

struct TokenizerParts {
  const Vocabulary& vocabulary;
  std::vector<Merge> merges = {};
  Pipeline pipeline = {};
  std::vector<AddedToken> added = {};
  Around around = {};
  std::optional<std::string> unk = {};  ///< stands for characters that have no token
  bool byte_fallback = false;
  bool ignore_merges = false;  ///< a piece that is a token is taken whole
};

/// Throws ModelError, which names the file `where`, for texts that are not UTF-8.
std::string tokenizer_json(TokenizerParts parts, const std::string& where);
/// `json` as the text of a file.
std::string text_of(const base::Json& json, const std::string& where);

}  // namespace retort::io
