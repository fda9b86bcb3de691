#pragma once
// A candidate as the loop over blocks uses it: the model that it is cut from, without the blocks and halves
// that it dropped, with masks of the channels, heads and hidden features that it dropped.
//
// Shape legend: D hidden.

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "retort/architecture/kept.h"
#include "retort/compress/compensated_layers.h"
#include "retort/compress/readers.h"
#include "retort/model/block.h"
#include "retort/model/weights.h"

namespace retort::prune {

struct MaskedModel {
  /// What becomes of the last layer of a half.
  struct Change {
    architecture::Half half;
    at::Tensor fitted;  ///< its weight by compensation; undefined: the half is skipped
  };
  struct Block {
    bool keeps = false;
    std::vector<Change> changes;
    model::BlockHooks hooks;  ///< masks of what is dropped
    std::string prefix;       ///< key of all that its inputs depend on
  };
  const model::Weights& input;
  std::vector<Block> blocks;  ///< of the input
  at::Tensor mask_D;          ///< of hidden features; undefined: all are kept

  /// `whole` has to outlive it.  With `compensated` masked layers have the weights that compensation would
  /// give them.  Throws StorageError.
  MaskedModel(const model::Weights& whole, const architecture::Kept& candidate,
              compress::CompensatedLayers* compensated = nullptr);

  /// Of a block that it keeps: without what is skipped, with what compensation fitted.
  model::BlockWeights weights_of_block(std::int64_t block) const;
};

}  // namespace retort::prune
