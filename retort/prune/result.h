#pragma once
// What a prune stage leaves, whatever search chose it.

#include "retort/base/json.h"
#include "retort/model/weights.h"
#include "retort/prune/objective.h"
#include "retort/record/observer.h"

namespace retort::prune {

struct PruneResult {
  model::Weights weights;
  base::Json report;  ///< {"kind": "prune", "parameters_before", "parameters_after", "kept": {...}, ...}
};

/// Slices the candidate out of `input`, proves that it computes what the masked model did, and compensates
/// for removed channels where the options want that.  Throws ValidationError when the proof fails.
model::Weights make_weights(const model::Weights& input, const Evaluator& evaluator,
                            const Candidate& candidate, const std::vector<CalibrationDomain>& domains,
                            const PruneOptions& options, record::Observer& observer);

/// The same with everything that is reported of it.
PruneResult make_result(const model::Weights& input, const Evaluator& evaluator, const Candidate& candidate,
                        const std::vector<CalibrationDomain>& domains, const PruneOptions& options,
                        record::Observer& observer);

}  // namespace retort::prune
