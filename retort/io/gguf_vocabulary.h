#pragma once
// The vocabulary in a GGUF file's metadata: tokens with their kinds, special ids, merges.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "retort/io/gguf_metadata.h"
#include "retort/io/vocabulary.h"

namespace retort::io {

/// Throws ModelError: no tokens, tokens that stand twice, lists of different lengths.
Vocabulary read_gguf_vocabulary(const MetadataReader& metadata);

/// The token of tokenizer.ggml.<name>_token_id, or of `otherwise` where the file does not say.
std::optional<std::string> special_token(const MetadataReader& metadata, const Vocabulary& vocabulary,
                                         std::string_view name, std::optional<std::int64_t> otherwise = {});

/// tokenizer.ggml.merges as pairs, which live as long as the metadata.
std::vector<Merge> read_gguf_merges(const MetadataReader& metadata);

}  // namespace retort::io
