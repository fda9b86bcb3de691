#pragma once
// The chosen candidate as a model of its own.

#include <string>
#include <vector>

#include "retort/eval/speed_table.h"
#include "retort/prune/evaluator.h"
#include "retort/prune/plan.h"
#include "retort/prune/result.h"
#include "retort/prune/setup.h"

namespace retort::prune {

/// Slices the candidate out of the input, proves that it computes what the masked model did, and compensates
/// for removed parts where the options want that.  Throws ValidationError when the proof fails.
model::Weights make_weights(const PruneSetup& setup, const ResolvedPlan& plan, const Evaluator& evaluator,
                            const MeasuredCandidate& chosen);

/// Makes the same weights, with what is said of them, and warns where they are worse than the candidate that
/// was chosen.  The caller adds the course of the search, the speed and the time.
PruneResult make_result(const PruneSetup& setup, const ResolvedPlan& plan, const Evaluator& evaluator,
                        const MeasuredCandidate& chosen);

/// One sentence where the saved model is worse than the search believed, beyond the interval, with the cause;
/// empty where it is not.
std::string why_worse(const PruneReport& report);

/// Why documents that nothing was chosen by lose more than those that the choice was made by, beyond the
/// chance of documents; empty where they do not, or where either are too few for an interval.
std::string why_unseen_lose_more(const PruneReport& report);

/// Why a smaller model brings no speed on this machine; empty where it does.  Seconds are of a forward pass.
std::string why_not_faster(double seconds_before, double seconds_after);

/// Times of the parts of the input and of `models`, on sequences as long as the calibration text's.
eval::SpeedTable speed_of(const PruneSetup& setup, std::vector<architecture::Config> models);

}  // namespace retort::prune
