#pragma once
// A GGUF file from which a model came: how its tensors are stored is how those of the model are to be.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "retort/base/files.h"
#include "retort/io/gguf.h"
#include "retort/publish/stored_blocks.h"

namespace retort::publish {

class LikeFile {
 public:
  /// Block i of the model is block `numbers[i]` of the file.  Throws ModelError or StorageError for a file
  /// that is not sound.
  LikeFile(const base::Path& file, std::vector<std::int64_t> numbers);

  /// The type of the model's tensor `name` in the file.  Throws ModelError where the file has no such tensor.
  io::GgmlType type(const std::string& name) const;
  /// Its blocks; nothing where rows of `cols` values hold none of them, or where each value of the model has
  /// its own place in the file and nothing is lost. Valid as long as this lives.
  std::optional<StoredBlocks> blocks(const std::string& name, std::int64_t cols, ValuesOfModel values) const;
  /// The divisors of angles in the file; empty where it has none under this name.
  std::vector<float> divisors(const std::string& name) const;

 private:
  struct Place {
    std::size_t part = 0;
    const io::GgufTensor* tensor = nullptr;
  };

  const Place& place(const std::string& name) const;

  base::Path path_;
  std::vector<std::int64_t> numbers_;
  std::vector<io::GgufFile> parts_;
  std::map<std::string, Place, std::less<>> places_;
};

}  // namespace retort::publish
