#pragma once
// The blocks that a sparsify stage has finished, on disk, so that it goes on after them.
//
//   identity.json                  of model, text and options
//   measured-00000.safetensors     no tensor: what making each layer sparse alone did
//   sparse-00000.safetensors       `weights`: the block's, flat as in its unit
//
// What a block's report needs, and a checksum of it and the weights, are in the file's metadata.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "retort/base/files.h"
#include "retort/base/json.h"

namespace retort::sparsify {

class FinishedBlocks {
 public:
  /// Touches the disk only at the first write.  With an empty path nothing is stored.
  FinishedBlocks(base::Path directory, base::Json identity);

  bool keep_any() const { return !directory_.empty(); }
  /// Returns what a pass kept of a block, and copies its weights into `weights_W` where that is
  /// defined. Empty when it is not there, or damaged: the block is then made again.
  std::optional<base::Json> read(const char* pass, std::int64_t block, const at::Tensor& weights_W) const;
  /// The file appears whole or not at all; what is there of another identity goes.  Throws StorageError.
  void write(const char* pass, std::int64_t block, const base::Json& report, const at::Tensor& weights_W);

 private:
  base::Path path(const char* pass, std::int64_t block) const;
  base::Path directory_;
  base::Json identity_;
  bool goes_on_ = false, entered_ = false;
};

}  // namespace retort::sparsify
