#pragma once
// tokenizer.model, in which SentencePiece keeps a tokenizer.

#include <string>
#include <vector>

#include "retort/base/json.h"

namespace retort::io {

/// The text of the tokenizer.json that gives the same ids: scores become merges.  `where` names the file.
/// `config` is what tokenizer_config.json beside it says, `added` what added_tokens.json says; both may be
/// null.  From them come tokens that the file lacks, and whether a text begins with <s> (it does unless
/// add_bos_token is false) and ends with </s> (add_eos_token).  Throws ModelError: no such file, a vocabulary
/// of another kind than BPE, a normalization of the text, tokens that contradict each other.
std::string tokenizer_json_of_sentencepiece(const std::string& bytes, const std::string& where,
                                            const base::Json& config, const base::Json& added);

/// The pieces by id, whatever their kind.  Throws ModelError for no such file.
std::vector<std::string> pieces_of_sentencepiece(const std::string& bytes, const std::string& where);

}  // namespace retort::io
