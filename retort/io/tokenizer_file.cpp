#include "retort/io/tokenizer_file.h"

#include <filesystem>
#include <optional>

#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/base/regular_file.h"
#include "retort/io/files_inside.h"
#include "retort/io/gguf_model.h"
#include "retort/io/gguf_parts.h"
#include "retort/io/gguf_tokenizer.h"
#include "retort/io/model_directory.h"
#include "retort/io/recognise.h"
#include "retort/io/sentencepiece.h"
#include "retort/io/tekken.h"
#include "retort/io/tokenizer_json.h"

namespace retort::io {
namespace {

namespace fs = std::filesystem;
using base::Json;
using base::ModelError;
using base::Path;

constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 24;
constexpr const char* kTokenizer = "tokenizer.json";
constexpr const char* kConfig = "tokenizer_config.json";
constexpr const char* kFixMistral = "fix_mistral_regex";

bool has(const Path& directory, const char* name) {
  return entry_exists(directory / name);
}

Json parsed(const std::string& text, const std::string& where) {
  try {
    return base::parse_json(text, {.max_bytes = text.size()});
  } catch (const base::JsonFault& fault) {
    throw ModelError(base::join(where, ": not sound JSON at byte ", fault.byte, ": ", fault.reason,
                                "; download the file again."));
  }
}

// Null where there is no such file.
Json beside(const Path& directory, const char* name) {
  if (!has(directory, name)) return {};
  return parsed(read_small_file(resolve_inside(directory, name), kMaxConfigBytes),
                (directory / name).string());
}

// Several models of Mistral were published with the expression of Llama 3; this key asks for theirs.
bool fixes_mistral(const Path& directory) {
  const Json config = beside(directory, kConfig);
  return config.is_object() && config.contains(kFixMistral) && config.at(kFixMistral) == true;
}

std::string with_tekken_pattern(const std::string& text, const std::string& where) {
  Json tokenizer = parsed(text, where);
  base::require<ModelError>(tokenizer.is_object(), where, ": is not a tokenizer; download the file again.");
  tokenizer["pre_tokenizer"] =
      byte_level_pipeline({&kTekkenPattern, 1}, SingleDigits::no, false).pre_tokenizer;
  return text_of(tokenizer, where);
}

TokenizerText read_from_directory(const Path& directory, std::size_t max_bytes) {
  const auto read = [&](const char* name) {
    TokenizerText file{(directory / name).string(),
                       base::read_file(resolve_inside(directory, name), max_bytes)};
    refuse_other_format(file.text, file.where, "a tokenizer");
    return file;
  };
  if (has(directory, kTokenizer)) {
    auto file = read(kTokenizer);
    if (fixes_mistral(directory)) file.text = with_tekken_pattern(file.text, file.where);
    return file;
  }
  if (has(directory, "tekken.json")) {
    const auto file = read("tekken.json");
    return {file.where, tokenizer_json_of_tekken(parsed(file.text, file.where), file.where)};
  }
  if (has(directory, "tokenizer.model")) {
    const auto file = read("tokenizer.model");
    return {file.where, tokenizer_json_of_sentencepiece(file.text, file.where, beside(directory, kConfig),
                                                        beside(directory, "added_tokens.json"))};
  }
  const bool slow =
      has(directory, "vocab.json") || has(directory, "vocab.txt") || has(directory, "spiece.model");
  throw ModelError(base::join(directory.string(), ": has no tokenizer.json, tekken.json or tokenizer.model; ",
                              slow ? "make one of its vocabulary: AutoTokenizer.from_pretrained(directory)"
                                     ".save_pretrained(directory) of transformers writes tokenizer.json."
                                   : "complete the model directory."));
}

// Of a file of any architecture, also one that has a vocabulary and no weights.
std::string text_of_gguf(const Path& path) {
  const auto parts = open_gguf_parts(path);
  const std::string where = path.string();
  return gguf_tokenizer_json({parts.front().metadata(), where});
}

}  // namespace

TokenizerText read_tokenizer_text(const Path& path, std::size_t max_bytes) {
  std::error_code error;
  if (is_gguf(path)) return {path.string(), text_of_gguf(path)};
  try {
    if (fs::is_directory(path, error)) return read_from_directory(path, max_bytes);
    const auto why = base::why_no_file(path);
    base::require<ModelError>(why.empty(), path.string(), ": ", why, ".");
    TokenizerText file{path.string(), base::read_file(path, max_bytes)};
    refuse_other_format(file.text, file.where, "a tokenizer");
    return file;
  } catch (const base::DataError& too_large) {
    throw ModelError(too_large.what());
  }
}

bool makes_tokenizer_json(const Path& directory) {
  if (has(directory, kTokenizer)) return fixes_mistral(directory);
  return has(directory, "tekken.json") || has(directory, "tokenizer.model");
}

}  // namespace retort::io
