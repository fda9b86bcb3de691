#pragma once
// A model that Retort reads: a Hugging Face directory (config.json, model.safetensors or an index with its
// shards, tokenizer files), or a GGUF file, which is seen as such a directory.

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "retort/base/files.h"
#include "retort/io/files_inside.h"
#include "retort/io/safetensors.h"
#include "retort/io/weight_files.h"

namespace retort::io {

class ModelDirectory {
 public:
  /// Opens a directory or a GGUF file.  Throws ModelError (missing, unsound or unsafe) or StorageError
  /// (cannot be read).
  static ModelDirectory open(const base::Path& path);

  const base::Path& path() const { return path_; }
  /// The text of config.json.
  const std::string& config_text() const { return config_text_; }
  /// All tensors, sorted by name.
  std::vector<std::string> names() const { return weights_->names(); }
  bool contains(std::string_view name) const { return weights_->contains(name); }
  /// Type and shape without the values.  Throws ModelError when there is no such tensor.
  TensorHeader header(std::string_view name) const { return weights_->header(name); }
  /// Makes the values of a quantised tensor, and lets go of them with the view.  Throws ModelError when there
  /// is no such tensor.
  TensorView find(std::string_view name) const { return weights_->find(name); }
  /// The metadata of all shards; the first shard that has a key wins.  Of a GGUF file its keys `general.*`.
  std::map<std::string, std::string> metadata() const { return weights_->metadata(); }
  /// Bytes of all tensors as they are stored.
  std::size_t total_bytes() const { return weights_->total_bytes(); }
  /// Number of values by type of storage, in the spelling of the files' format.
  StoredTypes stored_types() const { return weights_->stored_types(); }
  /// Those types that hold blocks of integers, of which values are made: "Q4_1, Q8_0".  Empty: none.
  std::string quantised_types() const;
  /// The weight files, in the order of their names.
  std::vector<base::Path> weight_files() const { return weights_->paths(); }
  /// Tensors that names() leaves out.
  UnreadTensors unread() const { return weights_->unread(); }
  /// A sentence for each thing in the directory that may be taken for a part of the model and is not read, or
  /// not as it stands there.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  ModelDirectory(base::Path path, std::string config_text, std::unique_ptr<const WeightFiles> weights,
                 std::vector<std::string> notes)
      : path_(std::move(path)),
        config_text_(std::move(config_text)),
        weights_(std::move(weights)),
        notes_(std::move(notes)) {}
  base::Path path_;
  std::string config_text_;
  std::unique_ptr<const WeightFiles> weights_;
  std::vector<std::string> notes_;
};

/// Whether a path names a GGUF file: by the ending .gguf, or by the first bytes of a file.
bool is_gguf(const base::Path& path);

/// The text of config.json, of at most 1 MiB, or that made from a GGUF file's metadata; throws ModelError or
/// StorageError.
std::string read_config_text(const base::Path& path);
/// Where messages say that text comes from: config.json of a directory, or the GGUF file.
std::string name_of_config(const base::Path& path);

/// A file to copy: where its bytes are, and its name in the copy, relative to the directory.
struct FileToCopy {
  base::Path source, name;
  std::string content;  ///< what is written where there is no source
};
/// The files that travel with a model unchanged, as far as `from` has them: tokenizer, chat templates,
/// processors, generation configuration; never weights or code.  `from` is a model directory, a GGUF file,
/// whose tokenizer files are made from its metadata, or a tokenizer.json.  Throws ModelError for a link that
/// leads out of the directory.
std::vector<FileToCopy> accompanying_files(const base::Path& from);
/// Writes files into a directory; throws StorageError.
void copy_files(std::span<const FileToCopy> files, const base::Path& directory);

inline constexpr std::size_t kMaxShardBytes = 5'000'000'000;

/// Writes model.safetensors, or shards and model.safetensors.index.json when the tensors need more than
/// `max_shard_bytes`.  Shards are filled in the order of names.  Returns the names of the files written.
std::vector<std::string> write_weights(const base::Path& directory, std::span<const TensorToWrite> tensors,
                                       const std::map<std::string, std::string>& metadata = {},
                                       std::size_t max_shard_bytes = kMaxShardBytes);

}  // namespace retort::io
