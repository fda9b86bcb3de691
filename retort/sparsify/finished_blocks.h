#pragma once
// The blocks that a sparsify stage has finished, on disk, so that it goes on after them.
//
//   identity.json                  of model, text and options
//   measured-00000.safetensors     no tensor: what making each layer sparse alone did
//   sparse-00000.safetensors       `weights`: the block's, flat as in its unit
//
// What was found of a block, as JSON, and a checksum of it and the weights, are in the file's metadata.  Rank
// 0 alone reads and writes them.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/comm/group.h"
#include "retort/sparsify/damage.h"
#include "retort/sparsify/layer.h"

namespace retort::sparsify {

/// What a pass found of a block.  `Layer`: LayerDamage where each layer is made sparse alone, LayerResult
/// where all stay sparse.
template <typename Layer>
struct FoundBlock {
  std::vector<Layer> layers = {};
  std::optional<CumulativeDamage> damage = {};
  double seconds = 0;
};

/// The same with the weights of the block, where they changed.
template <typename Layer>
struct KeptBlock {
  FoundBlock<Layer> found;
  at::Tensor weights_W;
};

class FinishedBlocks {
 public:
  /// Touches the disk only at the first write.  With an empty path nothing is stored.  `source_names` in the
  /// order of the calibration text.  The group must outlive this.
  FinishedBlocks(base::Path directory, base::Json identity, std::vector<std::string> source_names,
                 comm::Group& group);

  bool keep_any() const { return !directory_.empty(); }
  /// Returns what a pass kept of a block, with weights like `like_W` where that is defined.  Empty when it is
  /// not there, or damaged: the block is then made again.  Collective.
  template <typename Layer>
  std::optional<KeptBlock<Layer>> read(const char* pass, std::int64_t block, const at::Tensor& like_W) const;
  /// The file appears whole or not at all; what is there of another identity goes.  Collective.  Throws
  /// StorageError.
  template <typename Layer>
  void write(const char* pass, std::int64_t block, const FoundBlock<Layer>& found,
             const at::Tensor& weights_W);

 private:
  base::Path path(const char* pass, std::int64_t block) const;
  /// Leaves the block's weights in `weights_W`, where `like_W` is defined.
  std::optional<base::Json> read_json(const base::Path& path, const at::Tensor& like_W,
                                      at::Tensor& weights_W) const;
  void write_json(const base::Path& path, const base::Json& found, const at::Tensor& weights_W);

  base::Path directory_;
  base::Json identity_;
  std::vector<std::string> source_names_;
  comm::Group& group_;
  bool goes_on_ = false, entered_ = false;
};

}  // namespace retort::sparsify
