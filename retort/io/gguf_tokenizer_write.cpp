#include "retort/io/gguf_tokenizer_write.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "retort/base/error.h"
#include "retort/io/gguf_pre_tokenizers.h"
#include "retort/io/quote.h"
#include "retort/io/vocabulary.h"

namespace retort::io {
namespace {

using base::Json;
using base::ModelError;
using base::require;

constexpr const char* kSpace = "\u2581";

// A member, or null.
const Json& at(const Json& object, const char* key) {
  static const Json kNull;
  return object.is_object() && object.contains(key) ? object.at(key) : kNull;
}

std::string type_of(const Json& step) {
  const Json& type = at(step, "type");
  return type.is_string() ? type.get<std::string>() : "";
}

// The steps of a normalizer or pre-tokenizer, whether alone or in a sequence.
std::vector<Json> steps_of(const Json& node) {
  if (node.is_null()) return {};
  if (type_of(node) != "Sequence") return {node};
  std::vector<Json> steps;
  for (const char* list : {"normalizers", "pretokenizers"})
    for (const Json& step : at(node, list))
      for (Json& inner : steps_of(step)) steps.push_back(std::move(inner));
  return steps;
}

// What a step of byte-level BPE does, however the file spells it.
std::string said(const Json& step) {
  const std::string type = type_of(step);
  if (type == "ByteLevel")
    return base::join(type, at(step, "add_prefix_space") == true ? " after a space" : "",
                      at(step, "use_regex") == false ? "" : " cut as GPT-2");
  if (type == "Digits") return base::join(type, at(step, "individual_digits") == true ? " alone" : "");
  if (type != "Split") return type;
  const bool matches = at(step, "behavior") == "Isolated" && at(step, "invert") != true;
  const bool rest = at(step, "behavior") == "Removed" && at(step, "invert") == true;
  return base::join(type, " ", at(step, "pattern").dump(), matches || rest ? "" : " otherwise");
}

std::vector<std::string> said_in(const Json& normalizer, const Json& pre_tokenizer) {
  std::vector<std::string> all;
  for (const Json& node : {normalizer, pre_tokenizer})
    for (const Json& step : steps_of(node)) all.push_back(said(step));
  return all;
}

// The name in tokenizer.ggml.pre.
std::string pre_of(const Json& tokenizer, const std::string& where) {
  const auto own = said_in(at(tokenizer, "normalizer"), at(tokenizer, "pre_tokenizer"));
  const bool ignores = at(at(tokenizer, "model"), "ignore_merges") == true;
  for (const PreTokenizer& known : pre_tokenizers()) {
    const Pipeline pipeline = byte_level_pipeline(known.patterns, known.digits, known.composed);
    if (known.ignore_merges == ignores && said_in(pipeline.normalizer, pipeline.pre_tokenizer) == own)
      return std::string(known.name);
  }
  std::string steps;
  for (const std::string& step : own) steps += (steps.empty() ? "" : ", ") + step;
  throw ModelError(base::join(where, ": its tokenizer cuts text by ",
                              steps.empty() ? "nothing" : shown(steps),
                              ignores ? " and takes pieces that are tokens whole" : "",
                              ", for which GGUF has no name; write the model for transformers."));
}

bool is_sentencepiece(const Json& tokenizer) {
  return at(at(tokenizer, "model"), "byte_fallback") == true;
}

// Whether a space stands before a text.  Throws unless spaces become U+2581 and nothing else happens.
bool space_before(const Json& tokenizer, const std::string& where) {
  bool prefix = false, replaced = false, other = false;
  for (const char* part : {"normalizer", "pre_tokenizer"})
    for (const Json& step : steps_of(at(tokenizer, part))) {
      const std::string type = type_of(step);
      const Json& scheme = at(step, "prepend_scheme");
      prefix = prefix || (type == "Prepend" && at(step, "prepend") == kSpace) ||
               (type == "Metaspace" && scheme != "never");
      replaced =
          replaced || type == "Metaspace" ||
          (type == "Replace" && at(at(step, "pattern"), "String") == " " && at(step, "content") == kSpace);
      // Where spaces were replaced before, nothing is left to cut at.
      const bool cuts_nothing = type == "Split" && replaced && at(at(step, "pattern"), "String") == " ";
      other = other || (type != "Prepend" && type != "Metaspace" && type != "Replace" && !cuts_nothing);
    }
  require<ModelError>(replaced && !other, where,
                      ": its tokenizer changes text in a way that GGUF has no name for; write the model for "
                      "transformers.");
  return prefix;
}

struct Tokens {
  Vocabulary vocabulary;
  std::unordered_map<std::string, std::size_t> ids;
};

bool is_byte(const std::string& token) {
  return token.size() == 6 && token.starts_with("<0x") && token.back() == '>';
}

std::size_t id_of(const Json& id, const std::string& where) {
  require<ModelError>(id.is_number_unsigned(), where, ": a token has the id ", shown(id),
                      ", expected a whole number; download the file again.");
  return id.get<std::size_t>();
}

// Every row has a token; those that the tokenizer does not have are named by their number.
Tokens read_tokens(const Json& tokenizer, std::int64_t rows, const std::string& where) {
  const Json& model = at(tokenizer, "model");
  const bool pieces = is_sentencepiece(tokenizer);
  Tokens read;
  auto& [tokens, kinds, scores] = read.vocabulary;
  const auto count = static_cast<std::size_t>(rows);
  for (std::size_t id = 0; id < count; ++id) tokens.push_back(base::join("[PAD", id, "]"));
  kinds.assign(count, TokenKind::unused);
  const auto put = [&](std::size_t id, const std::string& token, TokenKind kind) {
    if (id >= count) return;
    tokens[id] = token;
    kinds[id] = kind;
    read.ids[token] = id;
  };
  for (const auto& [token, id] : at(model, "vocab").items())
    put(id_of(id, where), token, pieces && is_byte(token) ? TokenKind::byte : TokenKind::normal);
  for (const Json& added : at(tokenizer, "added_tokens"))
    put(id_of(at(added, "id"), where), at(added, "content").get<std::string>(),
        at(added, "special") == true ? TokenKind::control : TokenKind::user_defined);
  if (const Json& unknown = at(model, "unk_token"); unknown.is_string() && read.ids.contains(unknown))
    kinds[read.ids.at(unknown)] = TokenKind::unknown;
  require_distinct(read.vocabulary, where, "model.vocab");
  return read;
}

std::pair<std::string, std::string> merge_of(const Json& entry, const std::string& where) {
  if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string())
    return {entry[0].get<std::string>(), entry[1].get<std::string>()};
  const std::string line = entry.is_string() ? entry.get<std::string>() : "";
  const std::size_t space = line.find(' ', 1);
  require<ModelError>(space != line.npos && space + 1 < line.size(), where, ": a merge is ", shown(entry),
                      ", expected two tokens; download the file again.");
  return {line.substr(0, space), line.substr(space + 1)};
}

std::vector<std::pair<std::string, std::string>> merges_of(const Json& tokenizer, const std::string& where) {
  std::vector<std::pair<std::string, std::string>> merges;
  for (const Json& entry : at(at(tokenizer, "model"), "merges")) merges.push_back(merge_of(entry, where));
  return merges;
}

// SentencePiece's scores say in which order pieces are made; that of a token is the rank of its first merge.
void add_scores(Tokens& tokens, const Json& tokenizer, const std::string& where) {
  const auto merges = merges_of(tokenizer, where);
  auto& vocabulary = tokens.vocabulary;
  // What no merge makes comes last, as the tokens that a user adds.
  vocabulary.scores.assign(vocabulary.tokens.size(), -static_cast<double>(merges.size()) - 1);
  for (std::size_t rank = merges.size(); rank-- > 0;) {
    const auto made = tokens.ids.find(merges[rank].first + merges[rank].second);
    if (made != tokens.ids.end()) vocabulary.scores[made->second] = -static_cast<double>(rank);
  }
  const auto by_score = merges_by_score(vocabulary, where);
  const bool same = std::ranges::equal(by_score, merges, [](const Merge& a, const auto& b) {
    return a.first == b.first && a.second == b.second;
  });
  require<ModelError>(
      same, where,
      ": the merges of its tokenizer do not follow from scores of tokens, as GGUF wants them; write "
      "the model for transformers.");
}

// The ids of what stands before and after a text, where the post-processor says so.
std::vector<std::string> around(const Json& post_processor, const std::string& where) {
  const std::string type = type_of(post_processor);
  if (type == "Sequence") {
    std::vector<std::string> all;
    for (const Json& step : at(post_processor, "processors"))
      if (type_of(step) == "TemplateProcessing") all = around(step, where);
    return all;
  }
  if (type != "TemplateProcessing") return {"", ""};
  std::vector<std::string> sides{"", ""};
  std::size_t side = 0;
  for (const Json& piece : at(post_processor, "single")) {
    if (const Json& special = at(piece, "SpecialToken"); special.is_object()) {
      require<ModelError>(
          sides[side].empty(), where,
          ": its tokenizer puts several tokens beside a text, expected one at most; write the model "
          "for transformers.");
      sides[side] = at(special, "id").get<std::string>();
    } else {
      side = 1;
    }
  }
  return sides;
}

void add_special_ids(GgufEntries& entries, const Tokens& tokens, const Json& tokenizer, GgufSpecialIds ids,
                     const std::string& where) {
  const auto sides = around(at(tokenizer, "post_processor"), where);
  const auto id_of_token = [&](const std::string& token) -> std::optional<std::int32_t> {
    const auto found = tokens.ids.find(token);
    return found == tokens.ids.end() ? std::nullopt : std::optional(static_cast<std::int32_t>(found->second));
  };
  const auto before = id_of_token(sides.front()), after = id_of_token(sides.back());
  if (before) ids.bos = before;
  if (after) {  // it ends a text, whatever else does
    std::erase(ids.eos, *after);
    ids.eos.insert(ids.eos.begin(), *after);
  }
  const auto add = [&](const char* name, std::optional<std::int32_t> id) {
    if (id && static_cast<std::size_t>(*id) < tokens.vocabulary.tokens.size())
      entries.emplace_back(base::join("tokenizer.ggml.", name, "_token_id"), static_cast<std::uint32_t>(*id));
  };
  const auto eos = [&](std::size_t i) {
    return i < ids.eos.size() ? std::optional(ids.eos[i]) : std::nullopt;
  };
  add("bos", ids.bos);
  add("eos", eos(0));
  add("eot", eos(1));
  add("eom", eos(2));
  add("padding", ids.pad);
  if (const Json& unknown = at(at(tokenizer, "model"), "unk_token"); unknown.is_string())
    add("unknown", id_of_token(unknown.get<std::string>()));
  entries.emplace_back("tokenizer.ggml.add_bos_token", before.has_value());
  entries.emplace_back("tokenizer.ggml.add_eos_token", after.has_value());
}

std::vector<std::string> joined_merges(const Json& tokenizer, const std::string& where) {
  std::vector<std::string> lines;
  for (const auto& [left, right] : merges_of(tokenizer, where)) {
    require<ModelError>(
        left.find(' ') == left.npos && right.find(' ') == right.npos, where,
        ": a merge of its tokenizer has a token with a space, which GGUF cannot say; write the model "
        "for transformers.");
    lines.push_back(base::join(left, " ", right));
  }
  return lines;
}

}  // namespace

GgufEntries gguf_tokenizer_entries(const Json& tokenizer, std::int64_t rows, const GgufSpecialIds& ids,
                                   const std::string& where) {
  const bool pieces = is_sentencepiece(tokenizer);
  Tokens tokens = read_tokens(tokenizer, rows, where);
  GgufEntries entries{{"tokenizer.ggml.model", std::string(pieces ? "llama" : "gpt2")},
                      {"tokenizer.ggml.pre", pieces ? "default" : pre_of(tokenizer, where)}};
  if (pieces) {
    add_scores(tokens, tokenizer, where);
    entries.emplace_back("tokenizer.ggml.add_space_prefix", space_before(tokenizer, where));
    entries.emplace_back("tokenizer.ggml.scores", std::vector<float>(tokens.vocabulary.scores.begin(),
                                                                     tokens.vocabulary.scores.end()));
  } else {
    entries.emplace_back("tokenizer.ggml.merges", joined_merges(tokenizer, where));
  }
  std::vector<std::int32_t> kinds;
  for (const TokenKind kind : tokens.vocabulary.kinds) kinds.push_back(static_cast<std::int32_t>(kind));
  entries.emplace_back("tokenizer.ggml.tokens", tokens.vocabulary.tokens);
  entries.emplace_back("tokenizer.ggml.token_type", std::move(kinds));
  add_special_ids(entries, tokens, tokenizer, ids, where);
  return entries;
}

}  // namespace retort::io
