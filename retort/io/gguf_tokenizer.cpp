#include "retort/io/gguf_tokenizer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "retort/base/error.h"
#include "retort/io/files_inside.h"
#include "retort/io/gguf_vocabulary.h"
#include "retort/io/quote.h"

namespace retort::io {
namespace {

using base::Json;
using base::ModelError;
using base::require;

// How text is cut before BPE; the expressions are those of the models' own tokenizer.json.
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// What a name in tokenizer.ggml.pre stands for.
struct PreTokenizer {
  std::string_view name;
  const char* pattern;  // null: GPT-2's, which ByteLevel has itself
  bool single_digits;   // digits are cut off one by one before
  bool ignore_merges;   // a piece that is a token is taken whole
  bool bos;             // begin-of-text stands in front unless the file says otherwise
  bool composed;        // text is brought to NFC first, which the file does not say
};

constexpr std::array kPreTokenizers{
    PreTokenizer{"gpt-2", nullptr, false, false, false, false},
    PreTokenizer{"olmo", nullptr, false, false, false, true},
    PreTokenizer{"smollm", nullptr, true, false, false, false},
    PreTokenizer{"starcoder", nullptr, true, false, false, false},
    PreTokenizer{"refact", nullptr, true, false, false, false},
    PreTokenizer{"llama-bpe", kLlama3, false, true, true, false},
    PreTokenizer{"llama3", kLlama3, false, true, true, false},
    PreTokenizer{"llama-v3", kLlama3, false, true, true, false},
    PreTokenizer{"dbrx", kLlama3, false, false, false, false},
    PreTokenizer{"smaug-bpe", kLlama3, false, false, false, false},
    PreTokenizer{"qwen2", kQwen2, false, false, false, true},
    PreTokenizer{"deepseek-r1-qwen", kQwen2, false, false, false, false},
    PreTokenizer{"tekken", kTekken, false, true, true, false},
};

const PreTokenizer& find_pre_tokenizer(const MetadataReader& in) {
  const std::string said = in.text("tokenizer.ggml.pre").value_or("");
  const auto found = std::find_if(kPreTokenizers.begin(), kPreTokenizers.end(),
                                  [&](const PreTokenizer& row) { return row.name == said; });
  if (found != kPreTokenizers.end()) return *found;
  std::string names;
  for (const PreTokenizer& row : kPreTokenizers) names.append(names.empty() ? "" : ", ").append(row.name);
  throw ModelError(base::join(in.where(), ": tokenizer.ggml.pre is ", said.empty() ? "absent" : quote(said),
                              ", expected one of ", names, "; use a directory with a tokenizer.json."));
}

Json byte_level(bool use_regex, bool add_prefix_space = false) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

Json pre_tokenizer_json(const PreTokenizer& pre) {
  Json steps = Json::array();
  if (pre.single_digits) steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
  if (pre.pattern != nullptr)
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", pre.pattern}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  steps.push_back(byte_level(pre.pattern == nullptr));
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}

// A member that is certainly new: Json looks through all members otherwise.
void append(Json& object, std::string key, Json value) {
  object.get_ref<Json::object_t&>().emplace_back(std::move(key), std::move(value));
}

Json vocab_json(const GgufVocabulary& vocabulary) {
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

// Control tokens and the unknown one are special; user-defined ones are cut out of the text as well.
Json added_tokens_json(const GgufVocabulary& vocabulary) {
  Json list = Json::array();
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const TokenKind kind = vocabulary.kinds[id];
    const bool special = kind == TokenKind::control || kind == TokenKind::unknown;
    if (!special && kind != TokenKind::user_defined) continue;
    list.push_back({{"id", id},
                    {"content", vocabulary.tokens[id]},
                    {"single_word", false},
                    {"lstrip", false},
                    {"rstrip", false},
                    {"normalized", false},
                    {"special", special}});
  }
  return list;
}

// What stands around a text.
struct Around {
  std::optional<std::string> bos, eos;
};

Json template_json(const Around& around, const GgufVocabulary& vocabulary) {
  if (!around.bos && !around.eos) return {};
  Json special = Json::object();
  const auto piece = [&](const std::string& token, int type_id) {
    const auto id =
        std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), token) - vocabulary.tokens.begin();
    special[token] = {{"id", token}, {"ids", {id}}, {"tokens", {token}}};
    return Json{{"SpecialToken", {{"id", token}, {"type_id", type_id}}}};
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

Json bpe_json(const GgufVocabulary& vocabulary, const std::vector<Merge>& merges, Json unk,
              bool byte_fallback, bool ignore_merges) {
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", unk},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", !unk.is_null()},
          {"byte_fallback", byte_fallback},
          {"ignore_merges", ignore_merges},
          {"vocab", vocab_json(vocabulary)},
          {"merges", merges_json(merges)}};
}

Json byte_level_parts(const MetadataReader& in, const GgufVocabulary& vocabulary) {
  const PreTokenizer& pre = find_pre_tokenizer(in);
  Json normalizer;
  if (pre.composed) normalizer = {{"type", "NFC"}};
  return {{"normalizer", normalizer},
          {"pre_tokenizer", pre_tokenizer_json(pre)},
          {"decoder", byte_level(true, true)},
          {"model", bpe_json(vocabulary, read_gguf_merges(in), {}, false, pre.ignore_merges)}};
}

// U+2581 stands for a space.
Json replace_json(const char* pattern, const char* content) {
  return {{"type", "Replace"}, {"pattern", {{"String", pattern}}}, {"content", content}};
}

Json sentencepiece_parts(const MetadataReader& in, const GgufVocabulary& vocabulary) {
  constexpr const char* kSpace = "\u2581";
  require<ModelError>(
      !vocabulary.scores.empty(), in.where(),
      ": has no tokenizer.ggml.scores, expected those of a SentencePiece vocabulary; convert the "
      "model again.");
  require<ModelError>(
      !in.flag("tokenizer.ggml.remove_extra_whitespaces").value_or(false) &&
          !in.contains("tokenizer.ggml.precompiled_charsmap"),
      in.where(),
      ": its tokenizer changes the text before it cuts it (remove_extra_whitespaces or "
      "precompiled_charsmap), which is not supported; use a directory with a tokenizer.json.");
  const bool prefix = in.flag("tokenizer.ggml.add_space_prefix").value_or(true);
  const bool bytes =
      std::find(vocabulary.kinds.begin(), vocabulary.kinds.end(), TokenKind::byte) != vocabulary.kinds.end();
  Json normalizers = Json::array(), decoders = Json::array({replace_json(kSpace, " ")});
  if (prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
  normalizers.push_back(replace_json(" ", kSpace));
  if (bytes) decoders.push_back({{"type", "ByteFallback"}});
  decoders.push_back({{"type", "Fuse"}});
  if (prefix) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  const auto unk = special_token(in, vocabulary, "unknown", 0);
  return {
      {"normalizer", {{"type", "Sequence"}, {"normalizers", normalizers}}},
      {"pre_tokenizer", nullptr},
      {"decoder", {{"type", "Sequence"}, {"decoders", decoders}}},
      {"model", bpe_json(vocabulary, merges_by_score(vocabulary), unk ? Json(*unk) : Json(), bytes, false)}};
}

bool is_sentencepiece(const MetadataReader& in) {
  const std::string model = in.text("tokenizer.ggml.model").value_or("");
  require<ModelError>(
      model == "llama" || model == "gpt2", in.where(), ": tokenizer.ggml.model is ", quote(model),
      ", expected \"gpt2\" (byte-level BPE) or \"llama\" (SentencePiece); use a directory with a "
      "tokenizer.json.");
  return model == "llama";
}

std::optional<std::int64_t> default_id(bool pieces, std::int64_t id) {
  return pieces ? std::optional(id) : std::nullopt;
}

Around read_around(const MetadataReader& in, const GgufVocabulary& vocabulary, bool pieces) {
  const bool bos_wanted = pieces || find_pre_tokenizer(in).bos;
  Around around;
  if (in.flag("tokenizer.ggml.add_bos_token").value_or(bos_wanted))
    around.bos = special_token(in, vocabulary, "bos", default_id(pieces, 1));
  if (in.flag("tokenizer.ggml.add_eos_token").value_or(false))
    around.eos = special_token(in, vocabulary, "eos", default_id(pieces, 2));
  return around;
}

std::string text_of(const Json& json, const std::string& where) try {
  return json.dump(1) + "\n";
} catch (const Json::type_error&) {
  throw ModelError(
      base::join(where, ": tokens, merges or templates are not UTF-8; convert the model again."));
}

std::string tokenizer_config_json(const MetadataReader& in, const GgufVocabulary& vocabulary) {
  const bool pieces = is_sentencepiece(in);
  // The class that takes tokenizer.json as it stands; that of Llama builds another tokenizer from the
  // vocabulary.
  Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
  const auto add = [&](const char* key, const char* name, std::optional<std::int64_t> otherwise) {
    if (const auto token = special_token(in, vocabulary, name, otherwise)) config[key] = *token;
  };
  add("bos_token", "bos", default_id(pieces, 1));
  add("eos_token", "eos", default_id(pieces, 2));
  add("unk_token", "unknown", default_id(pieces, 0));
  add("pad_token", "padding", {});
  const std::string context_key = base::join(in.text("general.architecture").value_or(""), ".context_length");
  if (const auto context = in.count(context_key)) config["model_max_length"] = *context;
  return text_of(config, in.where());
}

// The chat template, and others beside it that have a name.
void add_templates(const MetadataReader& in, std::map<std::string, std::string>& files) {
  constexpr std::string_view kNamed = "tokenizer.chat_template.";
  if (const auto chat = in.text("tokenizer.chat_template")) files["chat_template.jinja"] = *chat;
  for (const auto& [key, value] : in.all()) {
    if (!key.starts_with(kNamed)) continue;
    const std::string name = key.substr(kNamed.size());
    require<ModelError>(is_basename(name), in.where(), ": metadata ", quote(key),
                        " does not name a template by a plain name; convert the model again.");
    files["additional_chat_templates/" + name + ".jinja"] = *in.text(key);
  }
}

}  // namespace

std::string gguf_tokenizer_json(const MetadataReader& in) {
  const GgufVocabulary vocabulary = read_gguf_vocabulary(in);
  const bool pieces = is_sentencepiece(in);
  Json parts = pieces ? sentencepiece_parts(in, vocabulary) : byte_level_parts(in, vocabulary);
  Json tokenizer = {{"version", "1.0"},
                    {"truncation", nullptr},
                    {"padding", nullptr},
                    {"added_tokens", added_tokens_json(vocabulary)},
                    {"normalizer", std::move(parts["normalizer"])},
                    {"pre_tokenizer", std::move(parts["pre_tokenizer"])},
                    {"post_processor", template_json(read_around(in, vocabulary, pieces), vocabulary)},
                    {"decoder", std::move(parts["decoder"])},
                    {"model", std::move(parts["model"])}};
  return text_of(tokenizer, in.where());
}

std::map<std::string, std::string> gguf_tokenizer_files(const MetadataReader& in) {
  std::map<std::string, std::string> files;
  if (!in.contains("tokenizer.ggml.tokens")) return files;
  files["tokenizer.json"] = gguf_tokenizer_json(in);
  files["tokenizer_config.json"] = tokenizer_config_json(in, read_gguf_vocabulary(in));
  add_templates(in, files);
  return files;
}

}  // namespace retort::io
