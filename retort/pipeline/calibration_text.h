#pragma once
// The text that a stage takes statistics from, and what tells it and the model apart from others.

#include <cstdint>
#include <functional>
#include <vector>

#include "retort/base/json.h"
#include "retort/calibrate/text.h"
#include "retort/model/weights.h"
#include "retort/pipeline/context.h"
#include "retort/pipeline/placed_weights.h"
#include "retort/pipeline/stages.h"

namespace retort::pipeline {

struct CalibratedModel {
  base::Path path;
  model::Weights weights;  ///< float32; in the memory of a machine they are one for its ranks
  bool writes;             ///< of shard::MachineWeights
  std::vector<calibrate::SourceText> sources;
};

/// What a stage asks of its text; every source has an equal share of the tokens.
struct CalibrationAsked {
  std::int64_t tokens, sequence_length;
  std::uint64_t seed;

  SequenceLength length() const { return {"sequence_length", sequence_length}; }
};

/// What profile, prune and sparsify ask of text, by the options of their stage.
template <typename Options>
CalibrationAsked asked_by(const Options& options, std::int64_t tokens) {
  return {tokens, options.sequence_length, options.seed};
}

/// A stage that takes statistics of a model, before it runs.
struct CalibratedStage {
  const recipe::Stage& stage;
  CalibrationAsked asked;
  std::int64_t text_tokens;  ///< of all sources, in whole sequences
  PlacedWeights weights = {};
};
/// `weights_for` is told the number of these tokens.  Throws as placed_weights().
CalibratedStage calibrated_stage(const Place& place, const recipe::Stage& stage,
                                 const CalibrationAsked& asked,
                                 const std::function<WeightsToPlace(std::int64_t text_tokens)>& weights_for);

/// What profile, prune and sparsify begin with.  Throws DataError for a source with less text than its share:
/// what was measured on it would be taken for more.  Collective.
CalibratedModel calibrated_model(const Context& context, const CalibratedStage& calibrated);

/// The text alone, before the run begins.  Throws DataError as above.
std::vector<calibrate::SourceText> calibration_text(const PlanContext& context, const recipe::Stage& stage,
                                                    const CalibrationAsked& asked);

/// As the stage's model, made of the one at `from`.
void save_compressed(const Context& context, const recipe::Stage& stage, const base::Path& from,
                     const model::Weights& weights);

/// What makes a model this model and no other, wherever it lies: checksums of weights and configuration.
base::Json model_fingerprint(const base::Path& model);

}  // namespace retort::pipeline
