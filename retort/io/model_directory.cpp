#include "retort/io/model_directory.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <utility>

#include "retort/base/error.h"
#include "retort/io/dtype.h"
#include "retort/io/gguf_model.h"
#include "retort/io/gguf_parts.h"
#include "retort/io/gguf_tokenizer.h"
#include "retort/io/model_file_names.h"
#include "retort/io/quote.h"
#include "retort/io/recognise.h"
#include "retort/io/safetensors_weights.h"
#include "retort/io/tensor_names.h"
#include "retort/io/tokenizer_file.h"

namespace retort::io {
namespace {

namespace fs = std::filesystem;
using base::ModelError;
using base::Path;
using base::require;

constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;

// What may accompany weights and says how a model is used.
constexpr std::array kAccompanying{"tokenizer.json",
                                   "tokenizer_config.json",
                                   "special_tokens_map.json",
                                   "added_tokens.json",
                                   "tokenizer.model",
                                   "tokenizer.model.v3",
                                   "tekken.json",
                                   "spiece.model",
                                   "sentencepiece.bpe.model",
                                   "vocab.json",
                                   "vocab.txt",
                                   "merges.txt",
                                   "chat_template.jinja",
                                   "chat_template.json",
                                   "processor_config.json",
                                   "preprocessor_config.json",
                                   "video_preprocessor_config.json",
                                   "generation_config.json"};
constexpr const char* kTemplates = "additional_chat_templates";
constexpr std::size_t kMaxTokenizerBytes = std::size_t{1} << 27;

// Chat templates beside the first, sorted.
std::vector<std::string> names_of_templates(const Path& folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (entry.path().extension() == ".jinja") names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

bool is_gguf(const Path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return false;
  if (path.extension() == ".gguf") return true;
  if (!fs::is_regular_file(path, error)) return false;
  std::array<char, 4> magic{};
  std::ifstream(path, std::ios::binary).read(magic.data(), magic.size());
  return std::string_view(magic.data(), magic.size()) == "GGUF";
}

std::string read_config_text(const Path& path) {
  if (is_gguf(path)) return GgufModel::open(path).config_text();
  if (!entry_exists(path / "config.json"))
    if (const std::string there = what_is_there(path); !there.empty())
      throw ModelError(base::join(path.string(), ": ", there, "."));
  return read_small_file(resolve_inside(path, "config.json"), kMaxConfigBytes);
}

std::string name_of_config(const Path& path) {
  return (is_gguf(path) ? path : path / "config.json").string();
}

namespace {

// What of config.json decides how tensors are named.
struct NamingConfig {
  bool has_language_part = false;  ///< models that see or hear have its configuration within their own
  bool may_be_tied = true;
};

NamingConfig read_naming(const std::string& config_text) {
  NamingConfig naming;
  try {
    const base::Json config = base::parse_json(config_text);
    if (!config.is_object()) return naming;
    const auto text = config.find("text_config");
    naming.has_language_part = text != config.end() && text->is_object();
    for (const base::Json* said : {&config, naming.has_language_part ? &*text : &config})
      naming.may_be_tied = naming.may_be_tied && said->value("tie_word_embeddings", base::Json()) != false;
  } catch (const base::JsonFault&) {  // whoever reads the configuration says so
  }
  return naming;
}

}  // namespace

ModelDirectory ModelDirectory::open(const Path& path) {
  if (is_gguf(path)) {
    auto model = std::make_unique<GgufModel>(GgufModel::open(path));
    std::string config = model->config_text();
    return {path, std::move(config), std::move(model), {}};
  }
  std::string config = read_config_text(path);
  std::vector<std::string> notes;
  auto weights = open_safetensors_weights(path, notes);
  const NamingConfig naming = read_naming(config);
  if (naming.has_language_part) weights = language_part(std::move(weights));
  weights = with_usual_names(std::move(weights), naming.may_be_tied, path.string(), notes);
  if (entry_exists(path / kAdapterFile))
    notes.push_back(base::join(path.string(), ": the adapter of ", quote(kAdapterFile),
                               " is not read, and transformers with peft adds it to the model; merge it, or "
                               "remove its files."));
  return {path, std::move(config), std::move(weights), std::move(notes)};
}

std::string ModelDirectory::quantised_types() const {
  std::string types;
  for (const auto& [type, values] : stored_types())
    if (!parse_dtype(type)) types += (types.empty() ? "" : ", ") + type;
  return types;
}

bool is_name_of_model_file(std::string_view name) {
  constexpr std::array kOwn{"config.json", "model.safetensors.index.json", "retort.json",
                            "modeling_retort.py"};
  const auto is_name = [&](const char* known) { return name == known; };
  return std::ranges::any_of(kOwn, is_name) || std::ranges::any_of(kAccompanying, is_name) ||
         name == kTemplates || name == "model.safetensors" ||
         (name.starts_with("model-") && name.ends_with(".safetensors"));
}

std::vector<FileToCopy> accompanying_files(const Path& from) {
  std::vector<FileToCopy> files;
  if (is_gguf(from)) {
    const auto parts = open_gguf_parts(from);  // one of them: there may be a vocabulary and no weights
    for (auto& [name, content] : gguf_tokenizer_files({parts.front().metadata(), from.string()}))
      files.push_back({{}, name, std::move(content)});
    return files;
  }
  std::error_code error;
  if (fs::is_regular_file(from, error)) return {{from, "tokenizer.json", {}}};
  const bool made = makes_tokenizer_json(from);
  for (const char* name : kAccompanying)
    if (entry_exists(from / name)) files.push_back({resolve_inside(from, name), name, {}});
  if (made) {
    std::erase_if(files, [](const FileToCopy& file) { return file.name == "tokenizer.json"; });
    files.insert(files.begin(), {{}, "tokenizer.json", read_tokenizer_text(from, kMaxTokenizerBytes).text});
  }
  for (const std::string& name : names_of_templates(from / kTemplates))
    files.push_back({resolve_inside(from, kTemplates, name), Path(kTemplates) / name, {}});
  return files;
}

void copy_files(std::span<const FileToCopy> files, const Path& directory) {
  constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;
  for (const FileToCopy& file : files) {
    const Path target = directory / file.name;
    base::make_directories(target.parent_path());
    base::write_file_atomically(
        target, file.source.empty() ? file.content : base::read_file(file.source, kMaxFileBytes));
  }
}

}  // namespace retort::io
