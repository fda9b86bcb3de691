#include "retort/io/safetensors_weights.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/io/files_inside.h"
#include "retort/io/quote.h"
#include "retort/io/recognise.h"
#include "retort/io/safetensors.h"

namespace retort::io {
namespace {

namespace fs = std::filesystem;
using base::Json;
using base::ModelError;
using base::Path;
using base::require;

constexpr std::size_t kMaxIndexBytes = std::size_t{1} << 26;
constexpr std::size_t kMaxShards = 4096;
constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

using WeightMap = std::map<std::string, std::string>;  // tensor -> shard

[[noreturn]] void refuse_without_weights(const Path& directory) {
  const std::string there = what_is_there(directory);
  throw ModelError(base::join(directory.string(), ": ",
                              there.empty() ? base::join("has neither ", kSingleFile, " nor ", kIndexFile,
                                                         "; give a Hugging Face model directory with "
                                                         "safetensors weights")
                                            : there,
                              "."));
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

// Files of weights beside those of a format that is read.
bool is_of_weights(const std::string& name) {
  return name.ends_with(".safetensors") || name == kIndexFile ||
         (name.starts_with("pytorch_model") && name.ends_with(".bin")) ||
         (name.starts_with("consolidated") && name.ends_with(".pth"));
}

// An index of one file, that which is read, says nothing else.
bool lists_only(const Path& index, const std::string& file) {
  try {
    const WeightMap map = parse_index(index);
    return std::ranges::all_of(map, [&](const auto& entry) { return entry.second == file; });
  } catch (const base::Error&) {
    return false;
  }
}

void note_other_weights(const Path& directory, const std::vector<Path>& read,
                        std::vector<std::string>& notes) {
  std::set<std::string> others;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored))
    if (is_of_weights(entry.path().filename().string())) others.insert(entry.path().filename().string());
  for (const Path& file : read) others.erase(file.filename().string());
  const bool by_index = !entry_exists(directory / kSingleFile);
  if (others.contains(kIndexFile) && (by_index || lists_only(directory / kIndexFile, kSingleFile)))
    others.erase(kIndexFile);
  if (!others.empty())
    notes.push_back(base::join(directory.string(), ": weights are read from ",
                               quote(by_index ? kIndexFile : kSingleFile),
                               ", as transformers does, and not from ",
                               listed({others.begin(), others.end()}), "; remove what is not meant."));
}

class SafetensorsWeights : public WeightFiles {
 public:
  explicit SafetensorsWeights(std::vector<SafetensorsFile> shards) : shards_(std::move(shards)) {
    for (std::size_t i = 0; i < shards_.size(); ++i)
      for (const auto& [tensor, info] : shards_[i].tensors()) shard_of_.emplace(tensor, i);
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    for (const auto& [tensor, shard] : shard_of_) all.push_back(tensor);
    return all;
  }
  bool contains(std::string_view name) const override { return shard_of_.find(name) != shard_of_.end(); }
  TensorHeader header(std::string_view name) const override {
    const TensorInfo& info = shard(name).tensors().find(name)->second;
    return {info.dtype, info.shape};
  }
  TensorView find(std::string_view name) const override {
    const SafetensorsFile& file = shard(name);
    file.check_unchanged();
    const TensorInfo& info = file.tensors().find(name)->second;
    return {info.dtype, info.shape, file.bytes(name), {}};
  }
  std::map<std::string, std::string> metadata() const override {
    std::map<std::string, std::string> all;
    for (const SafetensorsFile& file : shards_) all.insert(file.metadata().begin(), file.metadata().end());
    return all;
  }
  std::size_t total_bytes() const override {
    std::size_t total = 0;
    for (const SafetensorsFile& file : shards_)
      for (const auto& [tensor, info] : file.tensors()) total += info.end - info.begin;
    return total;
  }
  StoredTypes stored_types() const override {
    StoredTypes types;
    for (const SafetensorsFile& file : shards_)
      for (const auto& [tensor, info] : file.tensors())
        types[std::string(io::name(info.dtype))] +=
            static_cast<std::int64_t>((info.end - info.begin) / item_bytes(info.dtype));
    return types;
  }
  std::vector<Path> paths() const override {
    std::vector<Path> files;
    for (const SafetensorsFile& file : shards_) files.push_back(file.path());
    return files;
  }

 private:
  const SafetensorsFile& shard(std::string_view name) const {
    const auto found = shard_of_.find(name);
    require<ModelError>(found != shard_of_.end(), shards_.front().path().parent_path().string(),
                        ": has no tensor ", quote(name), ".");
    return shards_[found->second];
  }

  std::vector<SafetensorsFile> shards_;
  std::map<std::string, std::size_t, std::less<>> shard_of_;
};

}  // namespace

std::unique_ptr<const WeightFiles> open_safetensors_weights(const Path& directory,
                                                            std::vector<std::string>& notes) {
  std::vector<SafetensorsFile> shards;
  if (entry_exists(directory / kSingleFile))
    shards.push_back(SafetensorsFile::open(resolve_inside(directory, kSingleFile)));
  else if (entry_exists(directory / kIndexFile))
    shards = open_shards(directory, resolve_inside(directory, kIndexFile));
  else
    refuse_without_weights(directory);
  auto weights = std::make_unique<SafetensorsWeights>(std::move(shards));
  note_other_weights(directory, weights->paths(), notes);
  return weights;
}

}  // namespace retort::io
