#include "retort/io/gguf_vocabulary.h"

#include <cmath>

#include "retort/base/error.h"
#include "retort/io/quote.h"

namespace retort::io {
namespace {

using base::Json;
using base::ModelError;
using base::require;

const Json* list_of_tokens(const MetadataReader& in, const char* key, bool texts, std::size_t tokens) {
  const Json* list = in.list(key, texts);
  require<ModelError>(list == nullptr || list->size() == tokens, in.where(), ": metadata ", quote(key),
                      " has ", list ? list->size() : 0, " entries, expected ", tokens,
                      ", one for each token; convert the model again.");
  return list;
}

}  // namespace

Vocabulary read_gguf_vocabulary(const MetadataReader& in) {
  const Json* tokens = in.list("tokenizer.ggml.tokens", true);
  require<ModelError>(tokens != nullptr && !tokens->empty(), in.where(),
                      ": has no tokenizer (tokenizer.ggml.tokens); use a GGUF file with one.");
  Vocabulary vocabulary;
  for (const Json& token : *tokens) vocabulary.tokens.push_back(token.get<std::string>());
  require_distinct(vocabulary, in.where(), "tokenizer.ggml.tokens");
  vocabulary.kinds.assign(tokens->size(), TokenKind::normal);
  if (const Json* kinds = list_of_tokens(in, "tokenizer.ggml.token_type", false, tokens->size()))
    for (std::size_t id = 0; id < kinds->size(); ++id) {
      const Json& kind = (*kinds)[id];
      require<ModelError>(kind.is_number_integer() && kind >= 0 && kind <= 6, in.where(),
                          ": tokenizer.ggml.token_type of id ", id, " is ", shown(kind),
                          ", expected 0 to 6; convert the model again.");
      vocabulary.kinds[id] = static_cast<TokenKind>(kind.get<int>());
    }
  if (const Json* scores = list_of_tokens(in, "tokenizer.ggml.scores", false, tokens->size()))
    for (const Json& score : *scores) {
      vocabulary.scores.push_back(score.get<double>());
      require<ModelError>(
          std::isfinite(vocabulary.scores.back()), in.where(),
          ": tokenizer.ggml.scores holds a value that is not finite; convert the model again.");
    }
  return vocabulary;
}

std::optional<std::string> special_token(const MetadataReader& in, const Vocabulary& vocabulary,
                                         std::string_view name, std::optional<std::int64_t> otherwise) {
  const std::string key = base::join("tokenizer.ggml.", name, "_token_id");
  const auto said = in.count(key);
  const auto id = said ? said : otherwise;
  if (!id) return std::nullopt;
  const bool known = static_cast<std::size_t>(*id) < vocabulary.tokens.size();
  require<ModelError>(known || !said, in.where(), ": ", key, " is ", *id, ", expected an id below ",
                      vocabulary.tokens.size(), "; convert the model again.");
  if (!known) return std::nullopt;
  return vocabulary.tokens[static_cast<std::size_t>(*id)];
}

std::vector<Merge> read_gguf_merges(const MetadataReader& in) {
  const Json* list = in.list("tokenizer.ggml.merges", true);
  require<ModelError>(
      list != nullptr, in.where(),
      ": has no tokenizer.ggml.merges, expected those of a byte-level BPE; convert the model again.");
  std::vector<Merge> merges;
  for (const Json& entry : *list) {
    const std::string_view line = entry.get_ref<const std::string&>();
    const std::size_t space = line.find(' ', 1);
    require<ModelError>(space != line.npos && space + 1 < line.size(), in.where(),
                        ": tokenizer.ggml.merges has ", quote(line),
                        ", expected two tokens with a space between; convert the model again.");
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

}  // namespace retort::io
