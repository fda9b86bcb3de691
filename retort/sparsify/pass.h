#pragma once
// A pass of a sparsify stage: visits the chosen layers in order, block after block, and keeps on disk what it
// finds of a block.

#include <functional>
#include <vector>

#include "retort/base/json.h"
#include "retort/calibrate/walk.h"
#include "retort/record/observer.h"
#include "retort/sparsify/chosen_layers.h"
#include "retort/sparsify/finished_blocks.h"
#include "retort/sparsify/layer.h"

namespace retort::sparsify {

struct Pass {
  const char* name;      ///< part of the names of files
  const char* progress;  ///< what the observer is told
  calibrate::Walk* fitted;
  calibrate::Walk* guard = nullptr;           ///< null: nothing is polished
  std::vector<calibrate::Walk*> others = {};  ///< walks that go along
  bool changes_weights = false;
  /// Returns what to report of a layer.
  std::function<base::Json(const architecture::Tensor& layer, const LayerInputs& inputs)> visit;
  /// Returns what to report of a block, before its outputs are computed; may be empty.
  std::function<base::Json(std::int64_t block)> end = {};
};

/// Reports of a block, made now or by an earlier run.
struct BlockFound {
  std::vector<base::Json> layers;
  base::Json end;
};

struct PassResult {
  std::vector<BlockFound> blocks;
  double seconds_before = 0;  ///< time of earlier runs for the blocks that were kept
};

/// Goes on after the last block that `finished` holds, with the inputs that the block would have had, because
/// weights and text are the same.  Throws StoppedError, StorageError, and what `visit` throws.
PassResult run_pass(const Pass& pass, model::Weights& weights, const ChosenLayers& chosen,
                    const SparsifyOptions& options, FinishedBlocks& finished, record::Observer& observer);

}  // namespace retort::sparsify
