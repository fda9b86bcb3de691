#include "retort/io/sentencepiece.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "retort/base/error.h"
#include "retort/io/quote.h"
#include "retort/io/tokenizer_json.h"
#include "retort/io/vocabulary.h"

namespace retort::io {
namespace {

using base::Json;
using base::ModelError;
using base::require;

// A message of protocol buffers (protobuf.dev/programming-guides/encoding), read field by field.
class Message {
 public:
  Message(std::string_view bytes, const std::string& where) : rest_(bytes), where_(where) {}

  /// The number of the next field, whose value must be taken before the next call; 0 at the end.
  std::uint64_t next() {
    if (rest_.empty()) return 0;
    const std::uint64_t tag = varint();
    wire_ = tag & 7U;
    require_sound(tag >> 3 != 0);
    return tag >> 3;
  }
  std::int64_t integer() {
    require_sound(wire_ == 0);
    return static_cast<std::int64_t>(varint());
  }
  float real() {
    require_sound(wire_ == 5);
    std::uint32_t bits = 0;
    for (unsigned i = 0; const char byte : take(4))
      bits |= static_cast<std::uint32_t>(static_cast<unsigned char>(byte)) << 8 * i++;
    return std::bit_cast<float>(bits);
  }
  std::string_view bytes() {
    require_sound(wire_ == 2);
    return take(varint());
  }
  Message message() { return {bytes(), where_}; }
  void skip() {
    switch (wire_) {
      case 0:
        varint();
        return;
      case 1:
        take(8);
        return;
      case 2:
        bytes();
        return;
      case 5:
        take(4);
        return;
      default:
        require_sound(false);
    }
  }
  void require_sound(bool sound) const {
    require<ModelError>(sound, where_,
                        ": is not a SentencePiece model, or is damaged; download the file again.");
  }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      if (byte < 0x80) return value;
    }
    require_sound(false);
    return 0;
  }
  std::string_view take(std::uint64_t count) {
    require_sound(count <= rest_.size());
    const auto taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::string_view rest_;
  const std::string& where_;
  std::uint64_t wire_ = 0;
};

// What sentencepiece_model.proto calls ModelProto, as far as it decides about ids; numbers are its fields'.
struct Model {
  Vocabulary vocabulary;
  std::int64_t unk_id = 0, bos_id = 1, eos_id = 2;
  std::int64_t kind = 1;
  bool space_last = false;
  std::string_view normalization, rules;
  bool space_first = true, single_spaces = true, escapes_spaces = true;
};

void read_piece(Message piece, Vocabulary& vocabulary) {
  std::string_view token;
  float score = 0;
  std::int64_t kind = static_cast<std::int64_t>(TokenKind::normal);
  while (const auto field = piece.next()) {
    if (field == 1) {
      token = piece.bytes();
    } else if (field == 2) {
      score = piece.real();
    } else if (field == 3) {
      kind = piece.integer();
    } else {
      piece.skip();
    }
  }
  piece.require_sound(!token.empty() && kind >= 1 && kind <= 6 && std::isfinite(score) &&
                      std::ssize(vocabulary.tokens) < kMaxVocabularyTokens);
  vocabulary.tokens.emplace_back(token);
  vocabulary.kinds.push_back(static_cast<TokenKind>(kind));
  vocabulary.scores.push_back(score);
}

void read_trainer(Message trainer, Model& model) {
  while (const auto field = trainer.next()) {
    if (field == 3) {
      model.kind = trainer.integer();
    } else if (field == 24) {
      model.space_last = trainer.integer() != 0;
    } else if (field == 40) {
      model.unk_id = trainer.integer();
    } else if (field == 41) {
      model.bos_id = trainer.integer();
    } else if (field == 42) {
      model.eos_id = trainer.integer();
    } else {
      trainer.skip();
    }
  }
}

void read_normalizer(Message normalizer, Model& model) {
  while (const auto field = normalizer.next()) {
    if (field == 1) {
      model.normalization = normalizer.bytes();
    } else if (field == 2) {
      model.rules = normalizer.bytes();
    } else if (field == 3) {
      model.space_first = normalizer.integer() != 0;
    } else if (field == 4) {
      model.single_spaces = normalizer.integer() != 0;
    } else if (field == 5) {
      model.escapes_spaces = normalizer.integer() != 0;
    } else {
      normalizer.skip();
    }
  }
}

Model read_model(std::string_view bytes, const std::string& where) {
  Model model;
  Message file(bytes, where);
  while (const auto field = file.next()) {
    if (field == 1) {
      read_piece(file.message(), model.vocabulary);
    } else if (field == 2) {
      read_trainer(file.message(), model);
    } else if (field == 3) {
      read_normalizer(file.message(), model);
    } else {
      file.skip();
    }
  }
  file.require_sound(!model.vocabulary.tokens.empty());
  return model;
}

void refuse_what_is_not_bpe_of_plain_text(const Model& model, const std::string& where) {
  constexpr std::string_view kKinds[] = {"", "unigram", "bpe", "word", "char"};
  const bool known = model.kind >= 1 && model.kind <= 4;
  require<ModelError>(model.kind == 2, where, ": is of kind ",
                      known ? kKinds[static_cast<std::size_t>(model.kind)] : "unknown",
                      ", expected bpe; use a directory with a tokenizer.json.");
  require<ModelError>(
      model.rules.empty() && !model.single_spaces && model.escapes_spaces && !model.space_last, where,
      ": changes the text before it cuts it (normalization ", quote(model.normalization), ", spaces ",
      model.single_spaces ? "made single" : "as they are",
      "), which is not supported; use a directory with a tokenizer.json.");
}

// Added tokens by id and by content: files may list a million.
class AddedTokens {
 public:
  explicit AddedTokens(const std::vector<AddedToken>& tokens) {
    for (const AddedToken& token : tokens) put(token);
  }
  bool contains(std::size_t id) const { return tokens_.contains(id); }
  /// In place of the one with its id; false where its content has another id.
  bool put(const AddedToken& token) {
    if (const auto old = tokens_.find(token.id); old != tokens_.end()) ids_.erase(old->second.content);
    tokens_.insert_or_assign(token.id, token);
    return ids_.emplace(token.content, token.id).second;
  }
  std::vector<AddedToken> by_id() const {
    std::vector<AddedToken> sorted;
    for (const auto& [id, token] : tokens_) sorted.push_back(token);
    return sorted;
  }

 private:
  std::map<std::size_t, AddedToken> tokens_;
  std::unordered_map<std::string, std::size_t> ids_;
};

// The files beside tokenizer.model, which may say more about its tokens.
class Beside {
 public:
  Beside(const Json& config, const Json& added, const std::string& where)
      : config_(config), added_(added), where_(where) {}

  bool flag(const char* key, bool otherwise) const { return flag_in(config_, key, otherwise); }
  /// The content of the token that has this role.
  std::optional<std::string> role(const char* key) const {
    const Json* value = find(config_, key);
    if (value != nullptr && value->is_object()) value = find(*value, "content");
    return value != nullptr && value->is_string() ? std::optional(value->get<std::string>()) : std::nullopt;
  }
  /// Tokens of both files join those of the vocabulary.
  void add_tokens(const Vocabulary& vocabulary, std::vector<AddedToken>& tokens) const {
    AddedTokens known(tokens);
    if (const Json* listed = find(config_, "added_tokens_decoder"))
      for (const auto& [id, token] : listed->items()) add(described(id, token), vocabulary, known);
    if (added_.is_object())
      for (const auto& [content, id] : added_.items()) {
        if (!id.is_number_unsigned()) fail(base::join("the id of ", quote(content), " is ", shown(id)));
        const AddedToken token{.id = id.get<std::size_t>(), .content = content};
        if (!known.contains(token.id)) add(token, vocabulary, known);
      }
    tokens = known.by_id();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw ModelError(base::join(where_, ": in tokenizer_config.json or added_tokens.json beside it ", what,
                                "; correct these files."));
  }
  static const Json* find(const Json& object, const char* key) {
    if (!object.is_object()) return nullptr;
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }
  bool flag_in(const Json& object, const char* key, bool otherwise) const {
    const Json* value = find(object, key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) fail(base::join(key, " is ", shown(*value), ", expected true or false"));
    return value->get<bool>();
  }
  AddedToken described(const std::string& id, const Json& token) const {
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
    const Json* content = find(token, "content");
    if (error != std::errc() || end != id.data() + id.size() || content == nullptr || !content->is_string())
      fail(base::join("added_tokens_decoder has no content for id ", quote(id)));
    const auto has = [&](const char* key) { return flag_in(token, key, false); };
    return {.id = number,
            .content = content->get<std::string>(),
            .single_word = has("single_word"),
            .lstrip = has("lstrip"),
            .rstrip = has("rstrip"),
            .special = has("special")};
  }
  void add(const AddedToken& token, const Vocabulary& vocabulary, AddedTokens& tokens) const {
    if (token.id >= kMaxVocabularyTokens) fail(base::join("the id ", token.id, " is too large"));
    if (token.id < vocabulary.tokens.size() && vocabulary.tokens[token.id] != token.content)
      fail(base::join("id ", token.id, " is ", quote(token.content), ", but the vocabulary has ",
                      quote(vocabulary.tokens[token.id])));
    if (!tokens.put(token)) fail(base::join(quote(token.content), " has two ids"));
  }

  const Json& config_;
  const Json& added_;
  const std::string& where_;
};

Around around_of(const Model& model, const Beside& beside, const std::vector<AddedToken>& added) {
  const auto token = [&](const char* role, std::int64_t id) -> std::optional<AddedToken> {
    const auto name = beside.role(role);
    const auto found = std::ranges::find_if(added, [&](const AddedToken& one) {
      return name ? one.content == *name : static_cast<std::int64_t>(one.id) == id;
    });
    return found == added.end() ? std::nullopt : std::optional(*found);
  };
  Around around;
  if (beside.flag("add_bos_token", true)) around.bos = token("bos_token", model.bos_id);
  if (beside.flag("add_eos_token", false)) around.eos = token("eos_token", model.eos_id);
  return around;
}

}  // namespace

std::string tokenizer_json_of_sentencepiece(const std::string& bytes, const std::string& where,
                                            const Json& config, const Json& added) {
  const Model model = read_model(bytes, where);
  refuse_what_is_not_bpe_of_plain_text(model, where);
  const Vocabulary& vocabulary = model.vocabulary;
  require_distinct(vocabulary, where, "its pieces");
  const bool known = model.unk_id >= 0 && model.unk_id < std::ssize(vocabulary.tokens);
  require<ModelError>(known, where, ": its unknown token has id ", model.unk_id, ", expected one of its ",
                      vocabulary.tokens.size(), " pieces; download the file again.");
  const Beside beside(config, added, where);
  std::vector<AddedToken> tokens = added_tokens_of(vocabulary);
  // SentencePiece finds them in text whose spaces are marks already.
  for (AddedToken& token : tokens) token.normalized = !token.special && !model.space_first;
  beside.add_tokens(vocabulary, tokens);
  return tokenizer_json({.vocabulary = vocabulary,
                         .merges = merges_by_score(vocabulary, where),
                         .pipeline = sentencepiece_pipeline(model.space_first, vocabulary.has_bytes()),
                         .added = tokens,
                         .around = around_of(model, beside, tokens),
                         .unk = vocabulary.tokens[static_cast<std::size_t>(model.unk_id)],
                         .byte_fallback = vocabulary.has_bytes()},
                        where);
}

std::vector<std::string> pieces_of_sentencepiece(const std::string& bytes, const std::string& where) {
  return read_model(bytes, where).vocabulary.tokens;
}

}  // namespace retort::io
