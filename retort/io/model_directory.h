#pragma once
// A Hugging Face model directory: config.json, model.safetensors or an index with its shards, tokenizer
// files. No file outside the directory is ever opened, except where the Hugging Face cache links snapshots to
// its blobs.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "retort/base/files.h"
#include "retort/io/safetensors.h"

namespace retort::io {

/// One tensor of an open model; valid as long as the ModelDirectory lives.
struct TensorView {
  Dtype dtype = Dtype::f32;
  std::span<const std::int64_t> shape;
  std::span<const std::byte> bytes;
};

class ModelDirectory {
 public:
  /// Throws ModelError (missing, unsound or unsafe) or StorageError (cannot be read).
  static ModelDirectory open(const base::Path& directory);

  const base::Path& path() const { return directory_; }
  /// The text of config.json.
  const std::string& config_text() const { return config_text_; }
  /// All tensors, sorted by name.
  std::vector<std::string> names() const;
  bool contains(std::string_view name) const { return shard_of_.find(name) != shard_of_.end(); }
  /// Throws ModelError when there is no such tensor.
  TensorView find(std::string_view name) const;
  /// The metadata of all shards; the first shard that has a key wins.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Bytes of all tensors.
  std::size_t total_bytes() const;
  /// The weight files, in the order of their names.
  std::vector<base::Path> weight_files() const;

 private:
  base::Path directory_;
  std::string config_text_;
  std::vector<SafetensorsFile> shards_;
  std::map<std::string, std::size_t, std::less<>> shard_of_;
  std::map<std::string, std::string> metadata_;
};

/// The text of config.json, of at most 1 MiB; throws ModelError or StorageError.
std::string read_config_text(const base::Path& directory);

/// `name` inside `directory`, with links followed.  Throws ModelError unless the result is a regular file
/// inside the directory, or inside the cache root when the directory is a snapshot of the Hugging Face cache.
base::Path resolve_inside(const base::Path& directory, std::string_view name);

/// A file to copy: where its bytes are, and its name in the copy, relative to the directory.
struct FileToCopy {
  base::Path source, name;
};
/// The files that travel with a model unchanged, as far as `from` has them: tokenizer, chat templates,
/// processors, generation configuration; never weights or code.  `from` is a model directory or a
/// tokenizer.json.  Throws ModelError for a link that leads out of the directory.
std::vector<FileToCopy> accompanying_files(const base::Path& from);
/// Copies the bytes of files into a directory; throws StorageError.
void copy_files(std::span<const FileToCopy> files, const base::Path& directory);

inline constexpr std::size_t kMaxShardBytes = 5'000'000'000;

/// Writes model.safetensors, or shards and model.safetensors.index.json when the tensors need more than
/// `max_shard_bytes`.  Shards are filled in the order of names.  Returns the names of the files written.
std::vector<std::string> write_weights(const base::Path& directory, std::span<const TensorToWrite> tensors,
                                       const std::map<std::string, std::string>& metadata = {},
                                       std::size_t max_shard_bytes = kMaxShardBytes);

}  // namespace retort::io
