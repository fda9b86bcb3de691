#include "retort/io/model_directory.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/io/quote.h"

namespace retort::io {
namespace {

namespace fs = std::filesystem;
using base::Json;
using base::ModelError;
using base::Path;
using base::require;

constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxIndexBytes = std::size_t{1} << 26;
constexpr std::size_t kMaxShards = 4096;
constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

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

using WeightMap = std::map<std::string, std::string>;  // tensor -> shard

// A snapshot of the Hugging Face cache, models--X/snapshots/<revision>, holds links to models--X/blobs.
Path cache_blobs(const Path& canonical_directory) {
  const Path snapshots = canonical_directory.parent_path();
  const Path root = snapshots.parent_path();
  const bool is_cache =
      snapshots.filename() == "snapshots" && root.filename().string().rfind("models--", 0) == 0;
  return is_cache ? root / "blobs" : Path();
}

bool is_basename(std::string_view text) {
  return !text.empty() && text != "." && text != ".." && text.find('/') == std::string_view::npos &&
         text.find('\0') == std::string_view::npos;
}

bool entry_exists(const Path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

// `name` in `folder` of the directory, which is the directory itself where it is empty.
Path resolve(const Path& directory, const char* folder, std::string_view name) {
  const std::string who = base::join((directory / folder).string(), ": file ", quote(name));
  require<ModelError>(is_basename(name), who,
                      " is not a plain file name; files of a model lie in its own directory.");
  std::error_code error;
  const Path root = fs::canonical(directory, error);
  require<ModelError>(!error, directory.string(), ": no such directory (", error.message(),
                      "); give the directory of a Hugging Face model.");
  const Path place = *folder == 0 ? root : root / folder;
  const Path resolved = fs::canonical(place / name, error);
  require<ModelError>(!error, who, " is missing or its link leads nowhere (", error.message(),
                      "); complete the model directory.");
  const bool inside = resolved.parent_path() == place ||
                      (resolved.parent_path() == cache_blobs(root) && !cache_blobs(root).empty());
  require<ModelError>(inside, who, " leads to ", quote(resolved.string()),
                      ", outside the model directory; copy the file into it if you trust it.");
  require<ModelError>(fs::is_regular_file(resolved, error), who, " is not a regular file.");
  return resolved;
}

// Chat templates beside the first, sorted.
std::vector<std::string> names_of_templates(const Path& folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (entry.path().extension() == ".jinja") names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_small_file(const Path& path, std::size_t max_bytes) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  require<ModelError>(!error && size <= max_bytes, path.string(), ": ", error ? 0 : size,
                      " bytes, expected at most ", max_bytes,
                      "; this is not the file that its name promises.");
  return base::read_file(path, max_bytes);
}

[[noreturn]] void refuse_without_weights(const Path& directory) {
  std::error_code ignored;
  std::vector<std::string> pickles;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    const Path extension = entry.path().extension();
    if (extension == ".bin" || extension == ".pt" || extension == ".pth")
      pickles.push_back(entry.path().filename().string());
  }
  if (pickles.empty())
    throw ModelError(base::join(directory.string(), ": has neither ", kSingleFile, " nor ", kIndexFile,
                                "; give a Hugging Face model directory with safetensors weights."));
  throw ModelError(base::join(
      directory.string(), ": holds its weights as ", quote(*std::min_element(pickles.begin(), pickles.end())),
      ", a format that can run code when it is read; load it with transformers where you trust "
      "it and write it again with save_pretrained(directory), which makes safetensors."));
}

WeightMap parse_index(const Path& path) {
  const std::string where = path.string();
  Json json;
  try {
    json = base::parse_json(read_small_file(path, kMaxIndexBytes), {.max_bytes = kMaxIndexBytes});
  } catch (const base::JsonFault& fault) {
    throw ModelError(base::join(where, ": not sound JSON at byte ", fault.byte, ": ", fault.reason,
                                "; download or export the file again."));
  }
  require<ModelError>(json.is_object() && json.contains("weight_map") && json["weight_map"].is_object(),
                      where,
                      ": expected an object with a \"weight_map\"; download or export the file again.");
  const Json& map = json["weight_map"];
  require<ModelError>(!map.empty() && map.size() <= kMaxTensors, where, ": weight_map lists ", map.size(),
                      " tensors, expected 1 to ", kMaxTensors, ".");
  WeightMap shard_of;
  for (const auto& [tensor, shard] : map.items()) {
    require<ModelError>(shard.is_string(), where, ": weight_map names no file for tensor ", quote(tensor),
                        ".");
    const auto& file = shard.get_ref<const std::string&>();
    require<ModelError>(is_basename(file) && Path(file).extension() == ".safetensors", where,
                        ": weight_map puts tensor ", quote(tensor), " into ", quote(file),
                        ", expected the plain name of a .safetensors file in the same directory.");
    shard_of.emplace(tensor, file);
  }
  return shard_of;
}

// What a shard holds has to be listed for this shard: nothing extra, nothing twice.
void check_held_tensors(const WeightMap& index, const std::string& shard, const SafetensorsFile& file,
                        const std::string& where) {
  for (const auto& [tensor, info] : file.tensors()) {
    const auto entry = index.find(tensor);
    require<ModelError>(
        entry != index.end() && entry->second == shard, where, ": tensor ", quote(tensor), " lies in ",
        quote(shard), ", but weight_map ",
        entry == index.end() ? std::string("does not list it") : "says " + quote(entry->second),
        "; index and files belong to different models.");
  }
}

// What is listed has to be there.
void check_listed_tensors(const WeightMap& index, const std::set<std::string>& files,
                          const std::vector<SafetensorsFile>& shards, const std::string& where) {
  std::map<std::string_view, const SafetensorsFile*> file_of;
  auto shard = shards.begin();
  for (const std::string& file : files) file_of[file] = &*shard++;
  for (const auto& [tensor, file] : index)
    require<ModelError>(file_of.at(file)->tensors().count(tensor) == 1, where, ": weight_map puts tensor ",
                        quote(tensor), " into ", quote(file),
                        ", which does not hold it; index and files belong to different models.");
}

std::vector<SafetensorsFile> open_shards(const Path& directory, const Path& index_path) {
  const WeightMap index = parse_index(index_path);
  std::set<std::string> files;
  for (const auto& [tensor, shard] : index) files.insert(shard);
  require<ModelError>(files.size() <= kMaxShards, index_path.string(), ": ", files.size(),
                      " weight files, expected at most ", kMaxShards, ".");
  std::vector<SafetensorsFile> shards;
  for (const std::string& shard : files) {
    shards.push_back(SafetensorsFile::open(resolve_inside(directory, shard)));
    check_held_tensors(index, shard, shards.back(), index_path.string());
  }
  check_listed_tensors(index, files, shards, index_path.string());
  return shards;
}

}  // namespace

Path resolve_inside(const Path& directory, std::string_view name) {
  return resolve(directory, "", name);
}

std::string read_config_text(const Path& directory) {
  return read_small_file(resolve_inside(directory, "config.json"), kMaxConfigBytes);
}

ModelDirectory ModelDirectory::open(const Path& directory) {
  std::error_code error;
  require<ModelError>(fs::is_directory(directory, error), directory.string(),
                      ": no such directory; give the directory of a Hugging Face model.");
  ModelDirectory model;
  model.directory_ = directory;
  model.config_text_ = read_config_text(directory);
  if (entry_exists(directory / kSingleFile))
    model.shards_.push_back(SafetensorsFile::open(resolve_inside(directory, kSingleFile)));
  else if (entry_exists(directory / kIndexFile))
    model.shards_ = open_shards(directory, resolve_inside(directory, kIndexFile));
  else
    refuse_without_weights(directory);
  for (std::size_t i = 0; i < model.shards_.size(); ++i) {
    for (const auto& [tensor, info] : model.shards_[i].tensors()) model.shard_of_.emplace(tensor, i);
    for (const auto& [key, value] : model.shards_[i].metadata()) model.metadata_.emplace(key, value);
  }
  return model;
}

std::vector<std::string> ModelDirectory::names() const {
  std::vector<std::string> all;
  for (const auto& [tensor, shard] : shard_of_) all.push_back(tensor);
  return all;
}

TensorView ModelDirectory::find(std::string_view name) const {
  const auto found = shard_of_.find(name);
  require<ModelError>(found != shard_of_.end(), directory_.string(), ": has no tensor ", quote(name), ".");
  const SafetensorsFile& shard = shards_[found->second];
  shard.check_unchanged();
  const TensorInfo& info = shard.tensors().find(name)->second;
  return {info.dtype, info.shape, shard.bytes(name)};
}

std::size_t ModelDirectory::total_bytes() const {
  std::size_t total = 0;
  for (const SafetensorsFile& shard : shards_)
    for (const auto& [tensor, info] : shard.tensors()) total += info.end - info.begin;
  return total;
}

std::vector<Path> ModelDirectory::weight_files() const {
  std::vector<Path> files;
  for (const SafetensorsFile& shard : shards_) files.push_back(shard.path());
  return files;
}

std::vector<FileToCopy> accompanying_files(const Path& from) {
  std::error_code error;
  if (fs::is_regular_file(from, error)) return {{from, "tokenizer.json"}};
  std::vector<FileToCopy> files;
  for (const char* name : kAccompanying)
    if (entry_exists(from / name)) files.push_back({resolve_inside(from, name), name});
  for (const std::string& name : names_of_templates(from / kTemplates))
    files.push_back({resolve(from, kTemplates, name), Path(kTemplates) / name});
  return files;
}

void copy_files(std::span<const FileToCopy> files, const Path& directory) {
  constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;
  for (const FileToCopy& file : files) {
    const Path target = directory / file.name;
    base::make_directories(target.parent_path());
    base::write_file_atomically(target, base::read_file(file.source, kMaxFileBytes));
  }
}

}  // namespace retort::io
