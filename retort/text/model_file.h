#pragma once
// The parts of tokenizer.json that name tokens: "model" and "added_tokens", checked against each other.

#include <deque>
#include <string>
#include <vector>

#include "retort/text/added_tokens.h"
#include "retort/text/bpe.h"
#include "retort/text/node.h"

namespace retort::text {

/// Limits against hostile files; far above any tokenizer in use.
struct VocabularyLimits {
  std::int64_t tokens = std::int64_t{1} << 22;
  std::size_t merges = std::size_t{1} << 23;
  std::size_t token_bytes = std::size_t{1} << 16;
  std::size_t added_tokens = std::size_t{1} << 18;
  std::size_t added_token_bytes = 1024;  ///< each place of a text is compared with added tokens
  std::size_t added_tokens_bytes = std::size_t{1} << 22;  ///< of all, normalized: each takes 50 of memory
};

/// token -> id of `model.vocab`.  Throws ModelError (not BPE, ids out of range or given twice).
Vocabulary read_vocabulary(const Node& model, const VocabularyLimits& limits = {});

/// Throws ModelError (options that are not supported, merges of tokens that do not exist).
Bpe read_bpe(const Node& model, const Vocabulary& vocabulary, bool byte_level,
             const VocabularyLimits& limits = {});

/// In the order of the file.  Throws ModelError (an id that is not the one that HF tokenizers would give).
std::deque<AddedToken> read_added_tokens(const Node& root, const Vocabulary& vocabulary,
                                         const VocabularyLimits& limits = {});

}  // namespace retort::text
