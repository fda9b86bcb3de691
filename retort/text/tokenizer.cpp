#include "retort/text/tokenizer.h"

#include <limits>

#include "retort/io/model_directory.h"
#include "retort/io/tokenizer_file.h"
#include "retort/text/byte_level.h"
#include "retort/text/decoder.h"
#include "retort/text/limits.h"
#include "retort/text/model_file.h"
#include "retort/text/normalizer.h"
#include "retort/text/post_processor.h"
#include "retort/text/pre_tokenizer.h"
#include "retort/text/scratch_pool.h"
#include "retort/text/unicode.h"

namespace retort::text {
namespace {

base::Json parse(const io::TokenizerText& file) {
  try {
    return base::parse_json(file.text, {.max_bytes = kLargestTokenizerFile});
  } catch (const base::JsonFault& fault) {
    throw base::ModelError(
        base::join(file.where, ": is not valid JSON: ", fault.reason, " (byte ", fault.byte, ")."));
  }
}

}  // namespace

struct Tokenizer::State {
  struct Entry {
    bool present = false;
    bool special = false;  ///< left out by decode when it skips special tokens
    bool added = false;
    std::string token;
    std::string decoded;  ///< what the decoder sees: an added token in its normalized form
  };

  explicit State(const Node& root);
  void add_entry(std::int32_t id, const std::string& token);
  void place_added_tokens(const Node& root);
  const Entry& entry(std::int32_t id) const;
  std::vector<std::string> decoded(std::span<const std::int32_t> ids, bool skip_special_tokens) const;
  void encode_part(std::string_view text, bool at_start, BpeScratch& scratch,
                   std::vector<std::int32_t>& out) const;

  Vocabulary vocabulary;
  std::deque<AddedToken> added;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Bpe bpe;
  Decoder decoder;
  std::vector<Entry> entries;
  AddedTokenFinder raw_finder;         // in the text as it came
  AddedTokenFinder normalized_finder;  // in normalized text
  PostProcessor post_processor;
  mutable ScratchPool scratches;
};

Tokenizer::State::State(const Node& root)
    : vocabulary(read_vocabulary(root.at("model"))),
      added(read_added_tokens(root, vocabulary)),
      normalizer(root.find("normalizer")),
      pre_tokenizer(root.find("pre_tokenizer")),
      bpe(read_bpe(root.at("model"), vocabulary, pre_tokenizer.byte_level())),
      decoder(root.find("decoder")) {
  for (const auto& [token, id] : vocabulary) add_entry(id, token);
  place_added_tokens(root);
  post_processor = PostProcessor(root.find("post_processor"), [this](std::int64_t id) {
    return id < static_cast<std::int64_t>(entries.size()) && entries[static_cast<std::size_t>(id)].present;
  });
}

void Tokenizer::State::add_entry(std::int32_t id, const std::string& token) {
  const auto index = static_cast<std::size_t>(id);
  if (index >= entries.size()) entries.resize(index + 1);
  entries[index] = {.present = true, .special = false, .added = false, .token = token, .decoded = token};
}

void Tokenizer::State::place_added_tokens(const Node& root) {
  constexpr VocabularyLimits kLimits;
  std::size_t pattern_bytes = 0;
  for (const AddedToken& token : added) {
    add_entry(token.id, token.content);
    vocabulary.try_emplace(token.content, token.id);
    Entry& known = entries[static_cast<std::size_t>(token.id)];
    known.added = true;
    if (token.normalized) known.decoded = normalizer.apply(token.content);
    // HF tokenizers asks whether the decoded form is a special token's content.
    known.special = token.special && known.decoded == token.content;
    pattern_bytes += known.decoded.size();
    if (known.decoded.size() > kLimits.added_token_bytes || pattern_bytes > kLimits.added_tokens_bytes)
      root.fail("the added tokens up to ", shown(token.content), " have ", pattern_bytes,
                " bytes, expected at most ", kLimits.added_token_bytes, " of each and ",
                kLimits.added_tokens_bytes, " of all.");
    if (!known.decoded.empty()) (token.normalized ? normalized_finder : raw_finder).add(known.decoded, token);
  }
}

const Tokenizer::State::Entry& Tokenizer::State::entry(std::int32_t id) const {
  const auto index = static_cast<std::size_t>(id);
  base::require<base::DataError>(id >= 0 && index < entries.size() && entries[index].present,
                                 "tokenizer: the id ", id, " names no token, expected ids below ",
                                 entries.size(), "; do these ids come from another tokenizer?");
  return entries[index];
}

void Tokenizer::State::encode_part(std::string_view text, bool at_start, BpeScratch& scratch,
                                   std::vector<std::int32_t>& out) const {
  std::string storage;
  if (!normalizer.empty()) text = storage = normalizer.apply(text);
  const char* const begin = text.data();
  for (const TextPart& part : normalized_finder.cut(text)) {
    if (part.token != nullptr) {
      out.push_back(part.token->id);
      continue;
    }
    pre_tokenizer.apply(part.text, at_start && part.text.data() == begin,
                        [&](std::string_view piece) { bpe.encode(piece, scratch, out); });
  }
}

Tokenizer Tokenizer::from_file(const std::filesystem::path& path) {
  const io::TokenizerText file = io::read_tokenizer_text(path, kLargestTokenizerFile);
  const base::Json root = parse(file);
  return Tokenizer(std::make_shared<const State>(Node(root, file.where)));
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  base::require<base::DataError>(text.size() < kMaxTextBytes, "tokenizer: a text of ", text.size(),
                                 " bytes, expected less than ", kMaxTextBytes, "; cut it into documents.");
  std::string storage;
  text = to_valid_utf8(text, storage);
  std::vector<std::int32_t> ids;
  if (add_special_tokens) ids = state_->post_processor.prefix;
  auto scratch = state_->scratches.take();
  const char* const begin = text.data();
  for (const TextPart& part : state_->raw_finder.cut(text)) {
    if (part.token != nullptr)
      ids.push_back(part.token->id);
    else
      state_->encode_part(part.text, part.text.data() == begin, *scratch, ids);
  }
  const auto& suffix = state_->post_processor.suffix;
  if (add_special_tokens) ids.insert(ids.end(), suffix.begin(), suffix.end());
  state_->scratches.give_back(std::move(scratch));
  return ids;
}

std::vector<std::int32_t> Tokenizer::encode_as_plain_text(std::string_view text) const {
  base::require<base::DataError>(text.size() < kMaxTextBytes, "tokenizer: a text of ", text.size(),
                                 " bytes, expected less than ", kMaxTextBytes, "; cut it into documents.");
  std::string storage, normalized;
  text = to_valid_utf8(text, storage);
  if (!state_->normalizer.empty()) text = normalized = state_->normalizer.apply(text);
  std::vector<std::int32_t> ids;
  auto scratch = state_->scratches.take();
  state_->pre_tokenizer.apply(text, true,
                              [&](std::string_view piece) { state_->bpe.encode(piece, *scratch, ids); });
  state_->scratches.give_back(std::move(scratch));
  return ids;
}

std::vector<AddedToken> Tokenizer::added_tokens() const {
  return {state_->added.begin(), state_->added.end()};
}

std::vector<std::string> Tokenizer::State::decoded(std::span<const std::int32_t> ids,
                                                   bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::int32_t id : ids) {
    const Entry& known = entry(id);
    if (!(skip_special_tokens && known.special)) tokens.push_back(known.decoded);
  }
  return tokens;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  return state_->decoder.decode(state_->decoded(ids, skip_special_tokens));
}

std::string Tokenizer::decode_rest(std::span<const std::int32_t> ids) const {
  return state_->decoder.decode_rest(state_->decoded(ids, true));
}

bool Tokenizer::settles_text_before(std::int32_t id) const {
  const auto& entry = state_->entry(id);
  return !entry.special && state_->decoder.settles_text_before(entry.decoded);
}

std::int64_t Tokenizer::vocab_size() const {
  return static_cast<std::int64_t>(state_->entries.size());
}

std::optional<std::int32_t> Tokenizer::token_to_id(std::string_view token) const {
  const auto found = state_->vocabulary.find(token);
  if (found == state_->vocabulary.end()) return std::nullopt;
  return found->second;
}

std::string Tokenizer::id_to_token(std::int32_t id) const {
  return state_->entry(id).token;
}

std::optional<std::string> Tokenizer::token_bytes(std::int32_t id) const {
  const auto index = static_cast<std::size_t>(id);
  if (id < 0 || index >= state_->entries.size() || !state_->entries[index].present) return std::nullopt;
  const State::Entry& entry = state_->entries[index];
  if (entry.added) return entry.token;
  if (state_->pre_tokenizer.byte_level()) return text::token_bytes(entry.token).value_or(entry.token);
  if (const int byte = fallback_byte(entry.token); byte >= 0) return std::string(1, static_cast<char>(byte));
  return replace_all(entry.token, "\u2581", " ");
}

bool Tokenizer::is_special(std::int32_t id) const {
  const auto index = static_cast<std::size_t>(id);
  return id >= 0 && index < state_->entries.size() && state_->entries[index].special;
}

std::vector<std::int32_t> Tokenizer::special_prefix() const {
  return state_->post_processor.prefix;
}
std::vector<std::int32_t> Tokenizer::special_suffix() const {
  return state_->post_processor.suffix;
}

}  // namespace retort::text
