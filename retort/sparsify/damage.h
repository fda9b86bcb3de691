#pragma once
// What a change of weights does to the loss (calibrate/loss_increase.h), document by document, so that it has
// an interval.
//
// Shape legend: N tokens of a batch, D hidden.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "retort/base/json.h"
#include "retort/calibrate/loss_increase.h"
#include "retort/calibrate/options.h"
#include "retort/calibrate/text.h"
#include "retort/calibrate/top_k_reference.h"
#include "retort/calibrate/walk.h"
#include "retort/comm/group.h"
#include "retort/eval/bootstrap.h"
#include "retort/eval/score.h"
#include "retort/model/weights.h"

namespace retort::sparsify {

inline constexpr std::int64_t kDamageRows = 512;  ///< logit rows computed at a time

/// Loss increase of the changed model over the reference, and its parts, over sources.
struct Damage : calibrate::Evaluation {
  std::optional<eval::Interval> interval =
      {};  ///< of the loss increase, 95 %, paired by document; empty with too few
};

/// Damage of one layer that alone is sparse, in the model as it came.
struct LayerDamage {
  std::string name = {};  ///< of the layer
  Damage damage = {};
  bool sparse = false;  ///< whether it was chosen
};

/// Damage of all sparse layers of the blocks up to one.
struct CumulativeDamage {
  std::int64_t up_to_block = 0;
  Damage damage = {};
};

/// `source_names` in the order of the calibration text.
base::Json to_json(const Damage& damage, const std::vector<std::string>& source_names);
base::Json to_json(const LayerDamage& layer, const std::vector<std::string>& source_names);
base::Json to_json(const CumulativeDamage& cumulative, const std::vector<std::string>& source_names);
/// They read what to_json() writes, of the sources only the loss increase.
LayerDamage layer_damage_from_json(const base::Json& json, const std::vector<std::string>& source_names);
CumulativeDamage cumulative_damage_from_json(const base::Json& json,
                                             const std::vector<std::string>& source_names);

class DamageTest {
 public:
  /// Runs `reference` once on the batches, which are this rank's part of the text, in its order; both, and
  /// the group, must outlive this.  With KlOver::top_k its head is computed once too.
  DamageTest(const model::Weights& reference, const std::vector<calibrate::Batch>& batches,
             const calibrate::ObjectiveWeights& objective, comm::Group& group,
             calibrate::KlOver over = calibrate::KlOver::vocabulary);

  /// Measures the model that `walk` takes the batches through.  The model is changed only from the
  /// block on that the walk stands before; it has the reference's shape, embedding and head.  Collective; the
  /// same on all ranks.
  Damage measure(const calibrate::Walk& walk) const;

 private:
  const std::vector<calibrate::Batch>& batches_;
  calibrate::ObjectiveWeights objective_;
  comm::Group& group_;
  eval::HeadScorer scorer_;
  std::optional<calibrate::TopKReference> top_k_;
  std::vector<at::Tensor> reference_ND_;  // per batch, output of the last block; empty with top_k_
};

}  // namespace retort::sparsify
