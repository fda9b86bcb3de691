#include "retort/io/tokenizer_json.h"

#include <utility>

#include "retort/base/error.h"

namespace retort::io {
namespace {

using base::Json;

// A member that is certainly new: Json looks through all members otherwise.
void append(Json& object, std::string key, Json value) {
  object.get_ref<Json::object_t&>().emplace_back(std::move(key), std::move(value));
}

Json vocab_json(const Vocabulary& vocabulary) {
  Json vocab = Json::object();
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id)
    if (!vocabulary.is_padding(id)) append(vocab, vocabulary.tokens[id], id);
  return vocab;
}

Json merges_json(const std::vector<Merge>& merges) {
  Json list = Json::array();
  for (const auto& [left, right] : merges) list.push_back(Json::array({left, right}));
  return list;
}

Json added_json(const std::vector<AddedToken>& tokens) {
  Json list = Json::array();
  for (const AddedToken& token : tokens)
    list.push_back({{"id", token.id},
                    {"content", token.content},
                    {"single_word", token.single_word},
                    {"lstrip", token.lstrip},
                    {"rstrip", token.rstrip},
                    {"normalized", token.normalized},
                    {"special", token.special}});
  return list;
}

Json template_json(const Around& around) {
  if (!around.bos && !around.eos) return {};
  Json special = Json::object();
  const auto piece = [&](const AddedToken& token, int type_id) {
    special[token.content] = {{"id", token.content}, {"ids", {token.id}}, {"tokens", {token.content}}};
    return Json{{"SpecialToken", {{"id", token.content}, {"type_id", type_id}}}};
  };
  const auto sequence = [&](const char* name, int type_id) {
    Json steps = Json::array();
    if (around.bos) steps.push_back(piece(*around.bos, type_id));
    steps.push_back({{"Sequence", {{"id", name}, {"type_id", type_id}}}});
    if (around.eos) steps.push_back(piece(*around.eos, type_id));
    return steps;
  };
  Json single = sequence("A", 0), pair = single;
  for (const Json& step : sequence("B", 1)) pair.push_back(step);
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", special}};
}

Json byte_level(bool use_regex, bool add_prefix_space = false) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

Json replace_json(const char* pattern, const char* content) {
  return {{"type", "Replace"}, {"pattern", {{"String", pattern}}}, {"content", content}};
}

}  // namespace

const std::string_view kTekkenPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::vector<AddedToken> added_tokens_of(const Vocabulary& vocabulary) {
  std::vector<AddedToken> added;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const TokenKind kind = vocabulary.kinds[id];
    const bool special = kind == TokenKind::control || kind == TokenKind::unknown;
    if (special || kind == TokenKind::user_defined)
      added.push_back({.id = id, .content = vocabulary.tokens[id], .special = special});
  }
  return added;
}

Pipeline byte_level_pipeline(std::span<const std::string_view> patterns, SingleDigits digits, bool composed) {
  Json steps = Json::array();
  const auto add_digits = [&] { steps.push_back({{"type", "Digits"}, {"individual_digits", true}}); };
  if (digits == SingleDigits::first) add_digits();
  for (const auto pattern : patterns)
    steps.push_back(
        {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}});
  if (digits == SingleDigits::last) add_digits();
  steps.push_back(byte_level(patterns.empty()));
  return {composed ? Json{{"type", "NFC"}} : Json(),
          {{"type", "Sequence"}, {"pretokenizers", steps}},
          byte_level(true, true)};
}

Pipeline sentencepiece_pipeline(bool prefix, bool bytes) {
  constexpr const char* kSpace = "\u2581";
  Json normalizers = Json::array(), decoders = Json::array({replace_json(kSpace, " ")});
  if (prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
  normalizers.push_back(replace_json(" ", kSpace));
  if (bytes) decoders.push_back({{"type", "ByteFallback"}});
  decoders.push_back({{"type", "Fuse"}});
  if (prefix) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return {{{"type", "Sequence"}, {"normalizers", normalizers}},
          Json(),
          {{"type", "Sequence"}, {"decoders", decoders}}};
}

std::string tokenizer_json(TokenizerParts parts, const std::string& where) {
  const std::size_t tokens = parts.vocabulary.tokens.size();
  base::require<base::ModelError>(
      tokens <= kMaxVocabularyTokens && parts.added.size() <= kMaxAddedTokens, where, ": has ", tokens,
      " tokens, ", parts.added.size(), " of them special or added, expected at most ", kMaxVocabularyTokens,
      " and ", kMaxAddedTokens, "; the file is damaged, convert the model again.");
  Json model = {{"type", "BPE"},
                {"dropout", nullptr},
                {"unk_token", parts.unk ? Json(*parts.unk) : Json()},
                {"continuing_subword_prefix", nullptr},
                {"end_of_word_suffix", nullptr},
                {"fuse_unk", parts.unk.has_value()},
                {"byte_fallback", parts.byte_fallback},
                {"ignore_merges", parts.ignore_merges}};
  append(model, "vocab", vocab_json(parts.vocabulary));
  append(model, "merges", merges_json(parts.merges));
  Json tokenizer = {{"version", "1.0"},
                    {"truncation", nullptr},
                    {"padding", nullptr},
                    {"added_tokens", added_json(parts.added)},
                    {"normalizer", std::move(parts.pipeline.normalizer)},
                    {"pre_tokenizer", std::move(parts.pipeline.pre_tokenizer)},
                    {"post_processor", template_json(parts.around)},
                    {"decoder", std::move(parts.pipeline.decoder)}};
  append(tokenizer, "model", std::move(model));
  return text_of(tokenizer, where);
}

std::string text_of(const Json& json, const std::string& where) try {
  return json.dump(1) + "\n";
} catch (const Json::type_error&) {
  throw base::ModelError(
      base::join(where, ": tokens, merges or templates are not UTF-8; convert the model again."));
}

}  // namespace retort::io
