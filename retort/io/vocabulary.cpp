#include "retort/io/vocabulary.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "retort/base/error.h"
#include "retort/io/quote.h"

namespace retort::io {
namespace {

bool starts_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
}

// Places are those of tokens, so they compare as ids do.
struct ScoredMerge {
  double score = 0;
  std::size_t token = 0, left = 0, right = 0;
};

// A vocabulary of 32,000 pieces takes 2^21 bytes of both.
constexpr std::size_t kMaxComparedBytes = std::size_t{1} << 33, kMaxMergeBytes = std::size_t{1} << 27;
constexpr std::size_t kBytesBesideMerge = 24;  // as text in tokenizer.json

}  // namespace

void MergeBudget::compare(std::string_view token) {
  take(compared_, token.size() * token.size(), kMaxComparedBytes);
}

void MergeBudget::merge(std::string_view token) {
  take(merged_, token.size() + kBytesBesideMerge, kMaxMergeBytes);
}

void MergeBudget::take(std::size_t& taken, std::size_t bytes, std::size_t most) const {
  taken += bytes;
  base::require<base::ModelError>(
      taken <= most, where_, ": its tokens can be made of each other in more than ", most,
      " bytes of ways, expected the vocabulary of a model; convert the model again.");
}

// convert_hf_to_gguf fills a vocabulary up to the rows of the embedding with [PAD<id>].
bool Vocabulary::is_padding(std::size_t id) const {
  return kinds[id] == TokenKind::unused && tokens[id] == "[PAD" + std::to_string(id) + "]";
}

bool Vocabulary::has_bytes() const {
  return std::find(kinds.begin(), kinds.end(), TokenKind::byte) != kinds.end();
}

void require_distinct(const Vocabulary& vocabulary, const std::string& where, std::string_view list) {
  std::unordered_set<std::string_view> seen;
  for (const std::string& token : vocabulary.tokens)
    base::require<base::ModelError>(seen.insert(token).second, where, ": the token ", quote(token),
                                    " stands twice in ", list, "; convert the model again.");
}

std::vector<Merge> merges_by_score(const Vocabulary& vocabulary, const std::string& where) {
  std::unordered_map<std::string_view, std::size_t> ids;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id)
    if (vocabulary.kinds[id] == TokenKind::normal || vocabulary.kinds[id] == TokenKind::undefined)
      ids.emplace(vocabulary.tokens[id], id);
  std::vector<ScoredMerge> found;
  MergeBudget budget(where);
  for (const auto& [token, id] : ids) {
    budget.compare(token);
    for (std::size_t at = 1; at < token.size(); ++at) {
      if (!starts_character(token[at])) continue;
      const auto left = ids.find(token.substr(0, at)), right = ids.find(token.substr(at));
      if (left == ids.end() || right == ids.end()) continue;
      budget.merge(token);
      found.push_back({vocabulary.scores[id], id, left->second, right->second});
    }
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
