// The weights of a model as one file or, above a size, as shards with an index.

#include <algorithm>
#include <cstdio>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/io/model_directory.h"

namespace retort::io {
namespace {

using base::Json;
using Shard = std::vector<TensorToWrite>;

std::size_t size_of(const TensorToWrite& tensor) {
  return tensor_bytes(tensor.name, tensor.dtype, tensor.shape);
}

std::vector<Shard> plan_shards(std::vector<TensorToWrite> tensors, std::size_t max_shard_bytes) {
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorToWrite& a, const TensorToWrite& b) { return a.name < b.name; });
  std::vector<Shard> shards(1);
  std::size_t filled = 0;
  for (TensorToWrite& tensor : tensors) {
    const std::size_t size = size_of(tensor);
    if (!shards.back().empty() && (size > max_shard_bytes || filled > max_shard_bytes - size)) {
      shards.emplace_back();
      filled = 0;
    }
    filled += size;
    shards.back().push_back(std::move(tensor));
  }
  return shards;
}

std::string shard_name(std::size_t index, std::size_t count) {
  char text[64];
  std::snprintf(text, sizeof text, "model-%05zu-of-%05zu.safetensors", index + 1, count);
  return text;
}

std::string index_text(const std::vector<Shard>& shards) {
  std::size_t total = 0;
  std::map<std::string, std::string> weight_map;
  for (std::size_t i = 0; i < shards.size(); ++i)
    for (const TensorToWrite& tensor : shards[i]) {
      total += size_of(tensor);
      base::require<base::InternalError>(weight_map.emplace(tensor.name, shard_name(i, shards.size())).second,
                                         "write_weights: tensor ", tensor.name, " is given twice.");
    }
  Json json;
  json["metadata"]["total_size"] = total;
  json["weight_map"] = Json(weight_map);
  return json.dump(2) + "\n";
}

}  // namespace

std::vector<std::string> write_weights(const base::Path& directory, std::span<const TensorToWrite> tensors,
                                       const std::map<std::string, std::string>& metadata,
                                       std::size_t max_shard_bytes) {
  const std::vector<Shard> shards = plan_shards({tensors.begin(), tensors.end()}, max_shard_bytes);
  if (shards.size() == 1) {
    write_safetensors(directory / "model.safetensors", shards[0], metadata);
    return {"model.safetensors"};
  }
  const std::string index = index_text(shards);
  std::vector<std::string> files;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    files.push_back(shard_name(i, shards.size()));
    write_safetensors(directory / files.back(), shards[i], metadata);
  }
  files.emplace_back("model.safetensors.index.json");
  base::write_file_atomically(directory / files.back(), index);
  return files;
}

}  // namespace retort::io
