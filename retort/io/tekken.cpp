#include "retort/io/tekken.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "retort/base/error.h"
#include "retort/io/byte_symbols.h"
#include "retort/io/quote.h"
#include "retort/io/tokenizer_json.h"
#include "retort/io/vocabulary.h"

namespace retort::io {
namespace {

using base::Json;
using base::ModelError;
using base::require;

constexpr const char* kBegin = "<s>";
// Models have 1,000.  Those without a name get one, so a number in the file alone makes them.
constexpr std::int64_t kMaxSpecialTokens = 1 << 16;

// What files before version 7 leave out.
constexpr std::array kFirstSpecial{"<unk>",
                                   kBegin,
                                   "</s>",
                                   "[INST]",
                                   "[/INST]",
                                   "[AVAILABLE_TOOLS]",
                                   "[/AVAILABLE_TOOLS]",
                                   "[TOOL_RESULTS]",
                                   "[/TOOL_RESULTS]",
                                   "[TOOL_CALLS]",
                                   "[IMG]",
                                   "<pad>",
                                   "[IMG_BREAK]",
                                   "[IMG_END]",
                                   "[PREFIX]",
                                   "[MIDDLE]",
                                   "[SUFFIX]",
                                   "[SYSTEM_PROMPT]",
                                   "[/SYSTEM_PROMPT]",
                                   "[TOOL_CONTENT]"};

std::optional<int> sextet(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? std::optional(63) : std::nullopt;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0 || text.empty()) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto value = i + padding >= text.size() ? std::optional(0) : sextet(text[i]);
    if (!value) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(*value);
    if (i % 4 != 3) continue;
    for (int shift = 16; shift >= 0; shift -= 8) bytes += static_cast<char>(bits >> shift & 0xFF);
    bits = 0;
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

// Bytes in the byte-level alphabet, as UTF-8; none of its characters takes more than two bytes.
std::string symbols_of(std::string_view bytes) {
  static constexpr auto kSymbols = byte_symbols();
  std::string text;
  for (const char byte : bytes) {
    const std::uint16_t code = kSymbols[static_cast<unsigned char>(byte)];
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else {
      text += static_cast<char>(0xC0 | code >> 6);
      text += static_cast<char>(0x80 | (code & 0x3F));
    }
  }
  return text;
}

class Tekken {
 public:
  Tekken(const Json& json, const std::string& where) : json_(json), where_(where) {
    const Json& config = member(json, "config");
    pattern_ = text(config, "pattern");
    special_ = count(config, "default_num_special_tokens");
    require<ModelError>(special_ <= kMaxSpecialTokens, where_, ": has ", special_,
                        " special tokens, expected at most ", kMaxSpecialTokens,
                        "; download the file again.");
    const std::int64_t all = count(config, "default_vocab_size");
    require<ModelError>(special_ < all, where_, ": has ", all, " tokens, ", special_,
                        " of them special, expected more; download the file again.");
    read_special();
    read_vocabulary(all - special_);
  }

  std::string tokenizer() const;

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw ModelError(base::join(where_, ": ", what, "; download the file again."));
  }
  const Json& member(const Json& object, const char* key) const {
    if (!object.is_object() || !object.contains(key)) fail(base::join("lacks ", key));
    return object.at(key);
  }
  std::string text(const Json& object, const char* key) const {
    const Json& value = member(object, key);
    if (!value.is_string()) fail(base::join(key, " is ", shown(value), ", expected a text"));
    return value.get<std::string>();
  }
  std::int64_t count(const Json& object, const char* key) const {
    const Json& value = member(object, key);
    if (!value.is_number_integer() || value < 0 || value > kMaxVocabularyTokens)
      fail(base::join(key, " is ", shown(value), ", expected a number of tokens"));
    return value.get<std::int64_t>();
  }
  void read_special();
  void read_vocabulary(std::int64_t tokens);
  void add_merges(std::string_view token, const Vocabulary& vocabulary, MergeBudget& budget,
                  std::vector<Merge>& merges) const;

  const Json& json_;
  const std::string& where_;
  std::string pattern_;
  std::int64_t special_ = 0;
  std::vector<std::string> special_tokens_;
  std::deque<std::string> tokens_;
  std::unordered_map<std::string_view, std::size_t> ranks_;  // of tokens_, which do not move
};

void Tekken::read_special() {
  const auto found = json_.find("special_tokens");
  if (found == json_.end() || found->is_null() || found->empty()) {
    special_tokens_.assign(kFirstSpecial.begin(), kFirstSpecial.end());
  } else {
    for (const Json& token : *found) {
      if (count(token, "rank") != std::ssize(special_tokens_))
        fail("the ranks of special_tokens have a hole");
      special_tokens_.push_back(text(token, "token_str"));
    }
  }
  if (std::ssize(special_tokens_) > special_) fail("has more special tokens than it says");
  while (std::ssize(special_tokens_) < special_)
    special_tokens_.push_back(base::join("<SPECIAL_", special_tokens_.size(), ">"));
}

void Tekken::read_vocabulary(std::int64_t tokens) {
  const Json& vocabulary = member(json_, "vocab");
  if (!vocabulary.is_array() || std::ssize(vocabulary) < tokens)
    fail(base::join("vocab has ", vocabulary.size(), " tokens, expected ", tokens));
  for (std::int64_t rank = 0; rank < tokens; ++rank) {
    const Json& token = vocabulary[static_cast<std::size_t>(rank)];
    if (count(token, "rank") != rank) fail(base::join("the ranks of vocab have a hole before ", rank));
    auto bytes = from_base64(text(token, "token_bytes"));
    if (!bytes || bytes->empty()) fail(base::join("token_bytes of rank ", rank, " are not base64"));
    if (!ranks_.emplace(tokens_.emplace_back(std::move(*bytes)), rank).second)
      fail(base::join("rank ", rank, " has the bytes of another token"));
  }
}

// All pairs of tokens that make another one, the pair with the lower ranks first.
void Tekken::add_merges(std::string_view token, const Vocabulary& vocabulary, MergeBudget& budget,
                        std::vector<Merge>& merges) const {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  budget.compare(token);
  for (std::size_t cut = 1; cut < token.size(); ++cut) {
    const auto left = ranks_.find(token.substr(0, cut)), right = ranks_.find(token.substr(cut));
    if (left == ranks_.end() || right == ranks_.end()) continue;
    budget.merge(token);
    pairs.emplace_back(left->second, right->second);
  }
  std::sort(pairs.begin(), pairs.end());
  const auto specials = static_cast<std::size_t>(special_);
  for (const auto& [left, right] : pairs)
    merges.emplace_back(vocabulary.tokens[specials + left], vocabulary.tokens[specials + right]);
}

std::string Tekken::tokenizer() const {
  Vocabulary vocabulary{special_tokens_, std::vector(special_tokens_.size(), TokenKind::control), {}};
  for (const std::string& token : tokens_) vocabulary.tokens.push_back(symbols_of(token));
  vocabulary.kinds.resize(vocabulary.tokens.size(), TokenKind::normal);
  std::vector<Merge> merges;
  MergeBudget budget(where_);
  for (const std::string& token : tokens_) add_merges(token, vocabulary, budget, merges);
  const auto added = added_tokens_of(vocabulary);
  const auto begin =
      std::find_if(added.begin(), added.end(), [](const AddedToken& one) { return one.content == kBegin; });
  if (begin == added.end()) fail("has no special token <s>");
  return tokenizer_json(
      {.vocabulary = vocabulary,
       .merges = std::move(merges),
       .pipeline = byte_level_pipeline(std::array<std::string_view, 1>{pattern_}, SingleDigits::no, false),
       .added = added,
       .around = {.bos = *begin, .eos = {}},
       .ignore_merges = true},
      where_);
}

}  // namespace

std::string tokenizer_json_of_tekken(const Json& json, const std::string& where) {
  return Tekken(json, where).tokenizer();
}

}  // namespace retort::io
