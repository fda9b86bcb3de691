#include "retort/io/gguf_vocabulary.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "retort/base/error.h"
#include "retort/io/quote.h"

namespace retort::io {
namespace {

using base::Json;
using base::ModelError;
using base::require;

bool starts_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
}

const Json* list_of_tokens(const MetadataReader& in, const char* key, bool texts, std::size_t tokens) {
  const Json* list = in.list(key, texts);
  require<ModelError>(list == nullptr || list->size() == tokens, in.where(), ": metadata ", quote(key),
                      " has ", list ? list->size() : 0, " entries, expected ", tokens,
                      ", one for each token; convert the model again.");
  return list;
}

void require_distinct(const std::vector<std::string>& tokens, const std::string& where) {
  std::unordered_set<std::string_view> seen;
  for (const std::string& token : tokens)
    require<ModelError>(seen.insert(token).second, where, ": the token ", quote(token),
                        " stands twice in tokenizer.ggml.tokens; convert the model again.");
}

// Places are those of tokens, so they compare as ids do.
struct ScoredMerge {
  double score = 0;
  std::size_t token = 0, left = 0, right = 0;
};

}  // namespace

// convert_hf_to_gguf fills a vocabulary up to the rows of the embedding with [PAD<id>].
bool GgufVocabulary::is_padding(std::size_t id) const {
  return kinds[id] == TokenKind::unused && tokens[id] == "[PAD" + std::to_string(id) + "]";
}

GgufVocabulary read_gguf_vocabulary(const MetadataReader& in) {
  const Json* tokens = in.list("tokenizer.ggml.tokens", true);
  require<ModelError>(tokens != nullptr && !tokens->empty(), in.where(),
                      ": has no tokenizer (tokenizer.ggml.tokens); use a GGUF file with one.");
  GgufVocabulary vocabulary;
  for (const Json& token : *tokens) vocabulary.tokens.push_back(token.get<std::string>());
  require_distinct(vocabulary.tokens, in.where());
  vocabulary.kinds.assign(tokens->size(), TokenKind::normal);
  if (const Json* kinds = list_of_tokens(in, "tokenizer.ggml.token_type", false, tokens->size()))
    for (std::size_t id = 0; id < kinds->size(); ++id) {
      const Json& kind = (*kinds)[id];
      require<ModelError>(kind.is_number_integer() && kind >= 0 && kind <= 6, in.where(),
                          ": tokenizer.ggml.token_type of id ", id, " is ", quote(kind.dump()),
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

std::optional<std::string> special_token(const MetadataReader& in, const GgufVocabulary& vocabulary,
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

std::vector<Merge> merges_by_score(const GgufVocabulary& vocabulary) {
  std::unordered_map<std::string_view, std::size_t> ids;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id)
    if (vocabulary.kinds[id] == TokenKind::normal || vocabulary.kinds[id] == TokenKind::undefined)
      ids.emplace(vocabulary.tokens[id], id);
  std::vector<ScoredMerge> found;
  for (const auto& [token, id] : ids)
    for (std::size_t at = 1; at < token.size(); ++at) {
      if (!starts_character(token[at])) continue;
      const auto left = ids.find(token.substr(0, at)), right = ids.find(token.substr(at));
      if (left != ids.end() && right != ids.end())
        found.push_back({vocabulary.scores[id], id, left->second, right->second});
    }
  std::sort(found.begin(), found.end(), [](const ScoredMerge& a, const ScoredMerge& b) {
    return std::tie(b.score, a.token, a.left, a.right) < std::tie(a.score, b.token, b.left, b.right);
  });
  std::vector<Merge> merges;
  for (const ScoredMerge& one : found)
    merges.emplace_back(vocabulary.tokens[one.left], vocabulary.tokens[one.right]);
  return merges;
}

}  // namespace retort::io
