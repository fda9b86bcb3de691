#pragma once
// The text of a tokenizer.json, written for a tokenizer that stands in another format.

#include <cstddef>
#include <optional>
#include <string>
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
extern const char* const kTekkenPattern;

/// How text becomes pieces and back; values of tokenizer.json.
struct Pipeline {
  base::Json normalizer = {}, pre_tokenizer = {}, decoder = {};
};

/// `pattern` cuts the text into pieces (null: the pattern of GPT-2), and their bytes are symbols.
Pipeline byte_level_pipeline(const char* pattern, bool single_digits, bool composed);
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
