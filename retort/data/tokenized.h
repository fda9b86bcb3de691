#pragma once
// A document of a source as tokens: text as the tokenizer has it, a conversation as the chat template.

#include <optional>

#include "retort/data/document_reader.h"
#include "retort/data/sequence.h"

namespace retort::data {

/// The tokens of a document.  Those of a conversation have no special tokens around them but what the
/// template writes, and count as `source.loss_on` says.  Throws DataError that names file and line where the
/// template refuses it; nothing where the source skips bad lines.  Throws what `encode` throws.
std::optional<DocumentTokens> tokenized(const Document& document, const SourceOptions& source,
                                        const PackingOptions& packing, const Encode& encode,
                                        const SpecialTokens& special);

/// Where a document stands: "corpus/chats.jsonl, line 7".
std::string place_of(const Document& document);

}  // namespace retort::data
