#pragma once
// The vocabulary in a GGUF file's metadata: tokens with their kinds, special ids, merges.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "retort/io/gguf_metadata.h"

namespace retort::io {

/// The numbers are those of tokenizer.ggml.token_type.
enum class TokenKind {
  undefined = 0,
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

struct GgufVocabulary {
  std::vector<std::string> tokens;  ///< by id
  std::vector<TokenKind> kinds;
  std::vector<double> scores;  ///< as many as tokens, or none

  bool is_padding(std::size_t id) const;
};

using Merge = std::pair<std::string_view, std::string_view>;

/// Throws ModelError: no tokens, tokens that stand twice, lists of different lengths.
GgufVocabulary read_gguf_vocabulary(const MetadataReader& metadata);

/// The token of tokenizer.ggml.<name>_token_id, or of `otherwise` where the file does not say.
std::optional<std::string> special_token(const MetadataReader& metadata, const GgufVocabulary& vocabulary,
                                         std::string_view name, std::optional<std::int64_t> otherwise = {});

/// tokenizer.ggml.merges as pairs, which live as long as the metadata.
std::vector<Merge> read_gguf_merges(const MetadataReader& metadata);

/// SentencePiece joins the neighbours that make the token of the highest score.  As merges by rank that are
/// all pairs of tokens that make a token, best score first and then by id: the order of the converters that
/// wrote tokenizer.json of such models.  Only normal tokens are joined or made.  Pairs live as long as the
/// vocabulary.
std::vector<Merge> merges_by_score(const GgufVocabulary& vocabulary);

}  // namespace retort::io
