#include "retort/pipeline/input_files.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <system_error>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/base/json_file.h"
#include "retort/base/printable.h"
#include "retort/data/source_files.h"
#include "retort/io/quote.h"
#include "retort/pipeline/generated_text.h"
#include "retort/pipeline/tasks.h"
#include "retort/record/checked_json.h"
#include "retort/record/keys.h"

namespace retort::pipeline {
namespace {

namespace keys = record::keys;

constexpr std::size_t kTextHeadBytes = std::size_t{1} << 16;
constexpr std::size_t kSampleBytes = std::size_t{1} << 12, kSamples = 64;

constexpr const char* kOfAll = "all ";  // before the checksum of a whole file

std::string checksum_of(const base::Path& file, std::size_t size, std::size_t head_bytes, const char* of) {
  std::ifstream in(file, std::ios::binary);
  base::Hasher hasher;
  const auto add = [&](std::size_t begin, std::size_t count) {
    std::string bytes(count, '\0');
    in.seekg(static_cast<std::streamoff>(begin));
    in.read(bytes.data(), static_cast<std::streamsize>(count));
    hasher.update(bytes.data(), count);
  };
  add(0, std::min<std::size_t>(size, head_bytes));
  if (size > head_bytes)
    for (std::size_t sample = 1; sample <= kSamples; ++sample)
      add(sample * ((size - kSampleBytes) / kSamples), kSampleBytes);
  return in ? base::join(size, " bytes, ", of, hasher.hex()) : base::join(size, " bytes that cannot be read");
}

// Whether a file with the checksum `now` is the one with the checksum `then`.  Earlier versions sampled files
// that are read whole now.
bool is_same(const base::Path& file, const base::Json& then, const base::Json& now) {
  if (then == now || !then.is_string() || !now.is_string()) return then == now;
  const auto is_whole = [](const base::Json& checksum) {
    return checksum.get_ref<const std::string&>().find(base::join(", ", kOfAll)) != std::string::npos;
  };
  std::error_code ignored;
  const auto size = std::filesystem::file_size(file, ignored);
  if (ignored || !is_whole(now) || is_whole(then)) return false;
  return then == checksum_of(file, size, kModelHeadBytes, "") ||
         then == checksum_of(file, size, kTextHeadBytes, "");
}

// {stage: {path: checksum}} of what note_inputs() noted.  Damage costs it: then nothing is known.
base::Json noted_inputs(const record::RunFiles& run) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(run.inputs_path(), ignored)) return base::Json::object();
  try {
    const auto noted = base::read_own_json(run.inputs_path());
    if (record::checksum_fits(noted)) return noted.value(keys::kStages, base::Json::object());
  } catch (const base::JsonFault&) {
  }
  return base::Json::object();
}

// Files that a model is read from; notes and pictures beside them may differ.
bool is_read(const base::Path& file) {
  constexpr std::array kKinds{".safetensors", ".gguf", ".model", ".jinja", ".index.json"};
  constexpr std::array kNames{"config.json",
                              "generation_config.json",
                              "tokenizer.json",
                              "tokenizer_config.json",
                              "special_tokens_map.json",
                              "added_tokens.json",
                              "vocab.json",
                              "tekken.json"};
  const auto name = file.filename().string();
  return std::ranges::any_of(kKinds, [&](const char* kind) { return name.ends_with(kind); }) ||
         std::ranges::any_of(kNames, [&](const char* known) { return name == known; });
}

void add_files(const base::Path& model, base::Json& has) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(model, ignored)) {
    has[base::as_utf8(model.native())] = sampled_checksum(model);
    return;
  }
  for (const auto& entry : std::filesystem::directory_iterator(model, ignored))
    if (is_read(entry.path())) has[base::as_utf8(entry.path().native())] = sampled_checksum(entry.path());
}

}  // namespace

std::string sampled_checksum(const base::Path& file, std::size_t head_bytes) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(file, failed);
  if (failed) return "none";
  const bool whole = size > head_bytes && size <= kWholeBytes;
  return whole ? checksum_of(file, size, size, kOfAll) : checksum_of(file, size, head_bytes, "");
}

void add_outside_models(const recipe::Recipe& recipe, const recipe::Stage& stage, base::Json& has) {
  auto paths = stage.models_read();
  paths.insert(paths.end(), {stage.config, stage.tokenizer});
  for (const auto& path : paths)
    if (!path.empty() && !recipe.find_stage(path)) add_files(path, has);
}

void add_outside_writers(const recipe::Recipe& recipe, base::Json& has) {
  for (const auto& source : recipe.data)
    if (source.generated.is_given() && !recipe.find_stage(source.generated.model))
      add_files(source.generated.model, has);
}

void add_source_files(const data::SourceOptions& source, base::Json& has) {
  for (const auto* paths : {&source.paths, &source.held_out.paths})
    if (!paths->empty())
      for (const auto& file : data::expand_paths(source.name, *paths))
        has[base::as_utf8(file.native())] = sampled_checksum(file, kTextHeadBytes);
}

base::Json input_files(const recipe::Recipe& recipe, const recipe::Stage& stage) {
  auto has = base::Json::object();
  add_outside_models(recipe, stage, has);
  for (const auto& source : those_there(recipe.sources(stage))) add_source_files(source, has);
  if (const auto* options = std::get_if<eval::EvaluateOptions>(&stage.options))
    for (const auto& file : files_of_tasks(options->tasks)) has[file.string()] = sampled_checksum(file);
  return has;
}

FilesRead files_read(const record::RunFiles& run) {
  FilesRead read;
  for (const auto& stage : run.finished_stages()) {
    const auto result = run.sound_result(stage);
    if (result && result->is_object() && result->value(keys::kInputFiles, base::Json()).is_object())
      read.emplace_back(stage, result->at(keys::kInputFiles));
  }
  const auto noted = noted_inputs(run);
  for (const auto& [stage, files] : noted.items())
    if (files.is_object() && !run.finished(stage) && run.has_saved(stage)) read.emplace_back(stage, files);
  return read;
}

void note_inputs(const record::RunFiles& run, const recipe::Stage& stage, const base::Json& files) {
  auto noted = noted_inputs(run);
  noted[stage.name] = files;
  record::write_checked_json(run.inputs_path(), {{keys::kStages, noted}});
}

void require_same_inputs(const recipe::Stage& stage, const base::Json& files, const FilesRead& earlier) {
  for (const auto& [name, then] : earlier)
    for (const auto& [file, checksum] : then.items())
      base::require<base::UsageError>(
          !files.contains(file) || is_same(file, checksum, files.at(file)), "stage '", stage.name, "': '",
          file, "' has changed since stage '", name, "' read it (", io::shown(checksum), " then, ",
          io::shown(files.value(file, base::Json())), " now); restore it or choose another --run-dir.");
}

}  // namespace retort::pipeline
