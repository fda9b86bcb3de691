#include "retort/io/gguf_tokenizer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string_view>
#include <utility>

#include "retort/base/error.h"
#include "retort/io/files_inside.h"
#include "retort/io/gguf_pre_tokenizers.h"
#include "retort/io/gguf_vocabulary.h"
#include "retort/io/quote.h"

namespace retort::io {
namespace {

using base::Json;
using base::ModelError;
using base::require;

const PreTokenizer& find_pre_tokenizer(const MetadataReader& in) {
  const std::string said = in.text("tokenizer.ggml.pre").value_or("");
  const auto known = pre_tokenizers();
  const auto found = std::ranges::find(known, said, &PreTokenizer::name);
  if (found != known.end()) return *found;
  std::string names;
  for (const PreTokenizer& row : known) names.append(names.empty() ? "" : ", ").append(row.name);
  throw ModelError(base::join(in.where(), ": tokenizer.ggml.pre is ", said.empty() ? "absent" : quote(said),
                              ", expected one of ", names, "; use a directory with a tokenizer.json."));
}

TokenizerParts byte_level_parts(const MetadataReader& in, const Vocabulary& vocabulary) {
  const PreTokenizer& pre = find_pre_tokenizer(in);
  return {.vocabulary = vocabulary,
          .merges = read_gguf_merges(in),
          .pipeline = byte_level_pipeline(pre.patterns, pre.digits, pre.composed),
          .ignore_merges = pre.ignore_merges};
}

TokenizerParts sentencepiece_parts(const MetadataReader& in, const Vocabulary& vocabulary) {
  const bool merges_listed = in.contains("tokenizer.ggml.merges");
  require<ModelError>(
      merges_listed || !vocabulary.scores.empty(), in.where(),
      ": has no tokenizer.ggml.scores, expected those of a SentencePiece vocabulary; convert the "
      "model again.");
  require<ModelError>(
      !in.flag("tokenizer.ggml.remove_extra_whitespaces").value_or(false) &&
          !in.contains("tokenizer.ggml.precompiled_charsmap"),
      in.where(),
      ": its tokenizer changes the text before it cuts it (remove_extra_whitespaces or "
      "precompiled_charsmap), which is not supported; use a directory with a tokenizer.json.");
  const bool prefix = in.flag("tokenizer.ggml.add_space_prefix").value_or(true);
  return {.vocabulary = vocabulary,
          .merges = merges_listed ? read_gguf_merges(in) : merges_by_score(vocabulary, in.where()),
          .pipeline = sentencepiece_pipeline(prefix, vocabulary.has_bytes()),
          .unk = special_token(in, vocabulary, "unknown", 0),
          .byte_fallback = vocabulary.has_bytes()};
}

// Gemma 4 has the pieces of SentencePiece and lists its merges.
bool is_sentencepiece(const MetadataReader& in) {
  const std::string model = in.text("tokenizer.ggml.model").value_or("");
  require<ModelError>(
      model == "llama" || model == "gemma4" || model == "gpt2", in.where(), ": tokenizer.ggml.model is ",
      quote(model),
      ", expected \"gpt2\" (byte-level BPE), \"llama\" or \"gemma4\" (SentencePiece); use a directory with a "
      "tokenizer.json.");
  return model != "gpt2";
}

std::optional<std::int64_t> default_id(bool pieces, std::int64_t id) {
  return pieces ? std::optional(id) : std::nullopt;
}

Around read_around(const MetadataReader& in, const Vocabulary& vocabulary, bool pieces) {
  const auto token = [&](const char* name, std::int64_t otherwise) -> std::optional<AddedToken> {
    const auto content = special_token(in, vocabulary, name, default_id(pieces, otherwise));
    if (!content) return std::nullopt;
    const auto found = std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), *content);
    return AddedToken{.id = static_cast<std::size_t>(found - vocabulary.tokens.begin()), .content = *content};
  };
  const bool bos_wanted = pieces || find_pre_tokenizer(in).bos;
  Around around;
  if (in.flag("tokenizer.ggml.add_bos_token").value_or(bos_wanted)) around.bos = token("bos", 1);
  if (in.flag("tokenizer.ggml.add_eos_token").value_or(false)) around.eos = token("eos", 2);
  return around;
}

std::string tokenizer_config_json(const MetadataReader& in, const Vocabulary& vocabulary) {
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

// As llama.cpp does in a model of this name: spaces behind special tokens go, but behind these three.
void strip_as_phi3(const MetadataReader& in, std::vector<AddedToken>& added) {
  constexpr std::array<std::string_view, 3> kKeep{"<unk>", "<s>", "<|endoftext|>"};
  std::string name = in.text("general.name").value_or("");
  for (char& letter : name) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  if (name.find("phi-3") == name.npos && name.find("phi3") == name.npos) return;
  for (AddedToken& token : added) token.rstrip = std::ranges::find(kKeep, token.content) == kKeep.end();
}

}  // namespace

std::string gguf_tokenizer_json(const MetadataReader& in) {
  const Vocabulary vocabulary = read_gguf_vocabulary(in);
  const bool pieces = is_sentencepiece(in);
  TokenizerParts parts = pieces ? sentencepiece_parts(in, vocabulary) : byte_level_parts(in, vocabulary);
  parts.added = added_tokens_of(vocabulary);
  strip_as_phi3(in, parts.added);
  parts.around = read_around(in, vocabulary, pieces);
  return tokenizer_json(std::move(parts), in.where());
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
