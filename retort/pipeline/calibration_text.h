#pragma once
// The text that a stage takes statistics from, and what tells it and the model apart from others.

#include <cstdint>
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

/// What profile, prune and sparsify begin with; `offloaded` as in PlacedWeights.  Throws DataError for a
/// source with less text than its share: what was measured on it would be taken for more.  Collective.
CalibratedModel calibrated_model(const Context& context, const recipe::Stage& stage,
                                 const CalibrationAsked& asked, bool offloaded);

/// The text alone, before the run begins.  Throws DataError as above.
std::vector<calibrate::SourceText> calibration_text(const PlanContext& context, const recipe::Stage& stage,
                                                    const CalibrationAsked& asked);

/// How many tokens of text that is in all, in whole sequences.
std::int64_t calibration_tokens(const recipe::Stage& stage, const CalibrationAsked& asked);

/// As the stage's model, made of the one at `from`.
void save_compressed(const Context& context, const recipe::Stage& stage, const base::Path& from,
                     const model::Weights& weights);

/// What makes a model this model and no other, wherever it lies: checksums of weights and configuration.
base::Json model_fingerprint(const base::Path& model);

}  // namespace retort::pipeline
