#pragma once
// What a change of weights does to f of objective.h, document by document, so that it has an interval.
//
// Shape legend: N tokens of a batch, D hidden.

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "retort/base/json.h"
#include "retort/eval/bootstrap.h"
#include "retort/eval/score.h"
#include "retort/model/weights.h"
#include "retort/prune/calibration.h"
#include "retort/prune/options.h"

namespace retort::prune {

/// f of the changed model relative to the reference, mean over domains.
struct Damage {
  double objective = 0;
  std::optional<eval::Interval> interval;  ///< 95 %, paired by document; empty with too few documents
};

base::Json to_json(const Damage& damage);

class DamageTest {
 public:
  /// Runs `reference` once on the batches for which `judged` is true; all must outlive this.
  DamageTest(const model::Weights& reference, const std::vector<CalibrationBatch>& batches,
             const std::vector<bool>& judged, const ObjectiveWeights& objective);

  /// Of a model whose input of block `begin` is hidden_ND[i] for batch i (only judged ones are read) and
  /// whose blocks from there on are those of `changed`.  It has the reference's shape, embedding and head.
  Damage measure(const model::Weights& changed, std::int64_t begin,
                 const std::vector<at::Tensor>& hidden_ND) const;

 private:
  void add(const CalibrationBatch& batch, const eval::RowScores& rows,
           std::vector<std::vector<eval::RatioTerm>>& domains) const;

  const std::vector<CalibrationBatch>& batches_;
  const std::vector<bool>& judged_;
  ObjectiveWeights objective_;
  eval::HeadScorer scorer_;
  std::vector<at::Tensor> reference_ND_;  // per batch, output of the last block
};

}  // namespace retort::prune
