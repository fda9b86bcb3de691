#pragma once
// One pass over calibration text that collects what the inputs of every linear layer do: Hessian sums, means,
// second moments, maxima and histograms, see input_statistics.h.
//
// Block after block: the hidden states of all text go to disk between two blocks, so memory holds the
// statistics of two blocks (one is written while the next is computed) and does not depend on the amount of
// text, but for 8 bytes a token.  Panels of fixed size pass a block in the order of the text and are added in
// that order, so the result has the same bits however often the pass was interrupted.  What a resumed pass
// repeats is at most one block.
//
// Ranks take panels that lie beside each other and keep their hidden states apart.  Their sums are added when
// all have passed a block.

#include <string_view>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/calibrate/profile_result.h"
#include "retort/calibrate/text.h"
#include "retort/comm/group.h"
#include "retort/model/weights.h"
#include "retort/record/observer.h"
#include "retort/shard/memory_plan.h"

namespace retort::calibrate {

inline constexpr std::int64_t kPanelTokens =
    2048;  ///< most tokens of a panel of whole sequences; a longer sequence is a panel

inline constexpr std::string_view kProfiledWeights = "weights";  ///< in its plan: those of the model

/// Plans the memory of a pass whose longest panel has `panel_tokens`.  Only the text itself grows
/// with `text_tokens`.  `offloaded`: the weights lie in the memory of the machine, the rest on an
/// accelerator.  Operations take `path`.
shard::MemoryPlan plan_profile(const architecture::Config& config, std::int64_t item_bytes,
                               std::int64_t text_tokens, std::int64_t panel_tokens, bool offloaded,
                               ops::Path path);

struct ProfilePlace {
  base::Path directory;          ///< folder of the result
  base::Path scratch;            ///< folder for hidden states; removed at the end
  base::Json identity;           ///< names model, text and options; another identity there is begun anew
  std::int64_t memory = 0;       ///< bytes that the pass may use; 0: not checked
  comm::Group* group = nullptr;  ///< all of its ranks take part; null: this process alone
};

/// Writes the profile and returns, on rank 0, what it says in short.  Collective.  Throws DataError for
/// unusable text, ValidationError naming the layer whose inputs are not finite, MemoryError before the start
/// when the plan does not fit, StorageError; StoppedError when the observer asks to stop, with all finished
/// blocks kept.
ProfileResult profile(const model::Weights& weights, const std::vector<SourceText>& sources,
                      const ProfilePlace& place, record::Observer& observer);

}  // namespace retort::calibrate
