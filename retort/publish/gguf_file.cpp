#include "retort/publish/gguf_file.h"

#include "retort/architecture/checkpoint.h"
#include "retort/architecture/hf_config.h"
#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/chat/template_files.h"
#include "retort/io/gguf_config.h"
#include "retort/io/gguf_names.h"
#include "retort/io/gguf_tokenizer_write.h"
#include "retort/io/model_directory.h"
#include "retort/io/tokenizer_file.h"
#include "retort/publish/gguf_keys.h"
#include "retort/text/tokenizer.h"

namespace retort::publish {
namespace {

using architecture::Config;

io::GgufEntries general_entries(const GgufModelToWrite& model, const io::GgufArchitecture& architecture,
                                const text::Tokenizer& tokenizer) {
  const auto has_token = [&](std::string_view token) { return tokenizer.token_to_id(token).has_value(); };
  return {{"general.architecture", std::string(architecture.name)},
          {"general.type", std::string("model")},
          {"general.name", io::gguf_model_name(architecture, model.name, has_token)},
          {"general.file_type", model.types.file_type},
          {"general.quantization_version", std::uint32_t{2}}};
}

void append(io::GgufEntries& entries, io::GgufEntries more) {
  for (auto& entry : more) entries.push_back(std::move(entry));
}

// Of a tokenizer that was read, and so is sound.
io::GgufEntries tokenizer_entries(const Config& config, const base::Path& directory) {
  const auto read = io::read_tokenizer_text(directory, text::kLargestTokenizerFile);
  const base::Json tokenizer = base::parse_json(read.text, {.max_bytes = text::kLargestTokenizerFile});
  const auto& bos = config.bos_token_ids;
  auto entries = io::gguf_tokenizer_entries(tokenizer, config.vocab_size,
                                            {.bos = bos.empty() ? std::nullopt : std::optional(bos.front()),
                                             .pad = config.pad_token_id,
                                             .eos = config.eos_token_ids},
                                            read.where);
  for (const auto& [name, source] : chat::find_templates(directory).named)
    entries.emplace_back(name == "default" ? "tokenizer.chat_template" : "tokenizer.chat_template." + name,
                         source);
  return entries;
}

// By the keys of the decoder and the names of tensors alone, before there is a file.
void require_says(const Config& config, const io::GgufArchitecture& architecture, const std::string& where) {
  (void)gguf_names(config, architecture, where);
  io::GgufMetadata metadata{{"general.architecture", architecture.name}};
  for (const auto& [key, value] : gguf_keys(config, architecture, where))
    metadata[key] = std::visit([](const auto& of_type) { return base::Json(of_type); }, value);
  io::GgufShape shape{.vocab_size = config.vocab_size, .tied = config.tie_word_embeddings};
  for (auto& [name, values] : rope_divisors(config)) {
    if (name == "rope_freqs.weight") shape.rope_divisors = std::move(values);
    if (name == "rope_factors_short.weight") shape.short_divisors = std::move(values);
    if (name == "rope_factors_long.weight") shape.long_divisors = std::move(values);
  }
  const std::string text = io::gguf_config_json({metadata, where}, shape);
  require_said(config, architecture::parse_hf_config(text, where), architecture, where);
}

// The file says what was to be said, and holds the tensors that this asks for.
void require_read_back(const GgufModelToWrite& model, const io::GgufArchitecture& architecture,
                       const base::Path& file) {
  const std::string where = model.directory.string();
  const auto config = architecture::read_config(file);
  require_said(model.config, config, architecture, where);
  architecture::check_tensors(config, io::ModelDirectory::open(file));
}

}  // namespace

void require_gguf_says(const Config& config, const base::Path& tokenizer_from) {
  const std::string where = tokenizer_from.string();
  require_says(config, gguf_architecture_of(config, where), where);
  (void)text::Tokenizer::from_file(tokenizer_from);  // what is wrong with it
  (void)tokenizer_entries(config, tokenizer_from);
}

WrittenGguf write_gguf_model(const GgufModelToWrite& model, const base::Path& path,
                             std::size_t max_part_bytes) {
  const std::string where = model.directory.string();
  const auto& architecture = gguf_architecture_of(model.config, where);
  require_says(model.config, architecture, where);
  io::GgufEntries entries = general_entries(model, architecture, text::Tokenizer::from_file(model.directory));
  append(entries, gguf_keys(model.config, architecture, where));
  append(entries, tokenizer_entries(model.config, model.directory));
  WrittenGguf written;
  const auto tensors =
      gguf_tensors(model.config, model.weights, architecture, model.types, written.values, where);
  written.files = io::write_gguf_parts(path, entries, tensors, max_part_bytes);
  require_read_back(model, architecture, written.files.front());
  return written;
}

}  // namespace retort::publish
