#pragma once
// Makes chosen layers of a model n:m sparse, one input after the other: q k v, then o, then gate up, then
// down, block after block, each with the inputs that the already sparse layers before it produce.

#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/calibrate/split_text.h"
#include "retort/calibrate/text.h"
#include "retort/comm/group.h"
#include "retort/model/weights.h"
#include "retort/record/observer.h"
#include "retort/sparsify/options.h"

namespace retort::sparsify {

struct SparsifyResult {
  model::Weights
      weights;        ///< sparse layers hold values that the file type represents exactly; lineage lists them
  base::Json report;  ///< {"kind": "sparsify", "pattern", "layers": [...], "zeros_fraction"}
};

struct SparsifyPlace {
  base::Path scratch;            ///< for finished blocks; whoever saves the result removes it; empty: none
  base::Json identity;           ///< names model, text and options; another identity there is begun anew
  std::int64_t memory = 0;       ///< bytes that this rank may use; 0: not checked
  comm::Group* group = nullptr;  ///< ranks that do it together; null: this process alone
  bool writes = true;            ///< of shard::MachineWeights
};

/// Makes `weights` sparse in place.  Weights are fitted to the first side of the text.  By the second layers
/// are chosen, and polishing is kept or not; it may be empty, if layers are not to be chosen: then nothing is
/// polished.  The third only says what the damage is.  Goes on after the last block that an earlier call
/// finished in the same place, with the same result. Throws UsageError: unknown layer, block out of range,
/// columns that are no multiple of the pattern's group, another pattern than the model already has;
/// DataError: unusable text; ValidationError naming the layer: activations that are not finite, a Hessian
/// that cannot be factorised, a broken loss identity, a broken pattern after the cast to the file type;
/// MemoryError before the start when the plan does not fit even with hidden states on disk; StorageError;
/// StoppedError when the observer asks to stop. What was finished before is kept.
///
/// Collective: text and rows are shared over the ranks.  Their number changes no bit of a Hessian of up to
/// calibrate::kDoubleColumns inputs, as far as agree_on_units() goes.  Every rank returns the result.
SparsifyResult sparsify(model::Weights&& weights, const calibrate::TextSplit& text,
                        const SparsifyOptions& options, const SparsifyPlace& place,
                        record::Observer& observer);
/// Does the same with a copy.
SparsifyResult sparsify(const model::Weights& input, const calibrate::TextSplit& text,
                        const SparsifyOptions& options, const SparsifyPlace& place,
                        record::Observer& observer);
/// Does the same with a copy, and text that it splits by document; stores nothing.
SparsifyResult sparsify(const model::Weights& input, const std::vector<calibrate::SourceText>& sources,
                        const SparsifyOptions& options, record::Observer& observer);

}  // namespace retort::sparsify
