#pragma once
// What a prune stage leaves, whatever search chose it.

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/eval/speed_table.h"
#include "retort/model/weights.h"
#include "retort/prune/evaluator.h"
#include "retort/prune/options.h"
#include "retort/record/observer.h"

namespace retort::prune {

struct PruneResult {
  model::Weights weights;
  base::Json report;  ///< {"kind": "prune", "parameters_before", "parameters_after", "kept": {...}, ...}
};

/// Where a prune stage works.
struct PrunePlace {
  base::Path saved_file = {};  ///< every evaluation is appended; empty: none is saved.  Beside it is room for
                               ///< what memory does not hold
  std::int64_t memory = 0;     ///< bytes that the stage may use; 0: not checked
};

/// How a prune stage compares candidates, and what the whole stage needs at most.
struct PlannedEvaluation {
  EvaluatorOptions options;
  std::int64_t memory_bytes = 0;
};
/// Says what memory is needed, keeps hidden states on disk where it has to, and throws MemoryError where even
/// that does not fit, UsageError for an impossible target, DataError for unusable text.
PlannedEvaluation planned_evaluation(const model::Weights& input,
                                     const std::vector<calibrate::SourceText>& domains,
                                     const PruneOptions& options, const PrunePlace& place,
                                     std::int64_t batch_tokens, record::Observer& observer);

/// Slices the candidate out of `input`, proves that it computes what the masked model did, and compensates
/// for removed channels where the options want that.  Throws ValidationError when the proof fails.
model::Weights make_weights(const model::Weights& input, const Evaluator& evaluator,
                            const architecture::Kept& candidate,
                            const std::vector<calibrate::SourceText>& domains, const PruneOptions& options,
                            record::Observer& observer);

/// Makes the same weights, with everything that is reported of them.
PruneResult make_result(const model::Weights& input, const Evaluator& evaluator,
                        const architecture::Kept& candidate,
                        const std::vector<calibrate::SourceText>& domains, const PruneOptions& options,
                        record::Observer& observer);

/// Adds what the model costs: "cost" of the first of `results`, which is the model that is saved,
/// "cost_before" of the input, and "speed", the table of parts, measured here for all of them.  Returns the
/// table.
eval::SpeedTable report_costs(base::Json& report, const model::Weights& input,
                              std::vector<architecture::Config> results, std::int64_t sequence_length);

}  // namespace retort::prune
