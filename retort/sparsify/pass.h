#pragma once
// A pass of a sparsify stage: visits the chosen layers in order, block after block, and keeps on disk what it
// finds of a block.

#include <functional>
#include <optional>
#include <vector>

#include "retort/calibrate/walk.h"
#include "retort/record/observer.h"
#include "retort/sparsify/chosen_layers.h"
#include "retort/sparsify/finished_blocks.h"
#include "retort/sparsify/layer.h"
#include "retort/sparsify/shared_model.h"

namespace retort::sparsify {

/// A rank's part of the calibration text on its way through a pass.
struct PassText {
  calibrate::Walk* fitted;
  calibrate::Walk* guard = nullptr;           ///< null: nothing is polished
  std::vector<calibrate::Walk*> others = {};  ///< walks that go along
  bool weights_change = false;                ///< a block's, so that the guard has to see its new ones
};

/// `Layer`: LayerDamage or LayerResult, see FoundBlock.
template <typename Layer>
struct Pass {
  const char* name;      ///< part of the names of files
  const char* progress;  ///< what the observer is told
  PassText text;
  std::function<Layer(const architecture::Tensor& layer, const LayerInputs& inputs)> visit;
  /// Measures a block that was visited, before its outputs are computed; may be empty.
  std::function<std::optional<CumulativeDamage>(std::int64_t block)> end = {};
};

template <typename Layer>
struct PassResult {
  std::vector<FoundBlock<Layer>> blocks = {};  ///< from the first one, found now or by an earlier run
  double seconds_before = 0;                   ///< time of earlier runs for the blocks that were kept
};

/// Goes on after the last block that `finished` holds, with the inputs that the block would have had, because
/// weights and text are the same.  Collective: the walks are each rank's part of the text.  Throws
/// StoppedError, StorageError, and what `visit` throws.
template <typename Layer>
PassResult<Layer> run_pass(const Pass<Layer>& pass, SharedModel& model, const ChosenLayers& chosen,
                           const SparsifyOptions& options, FinishedBlocks& finished,
                           record::Observer& observer);

}  // namespace retort::sparsify
