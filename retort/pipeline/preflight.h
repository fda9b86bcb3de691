#pragma once
// Says what is wrong with a run before it begins: nothing is made for a run that cannot succeed, and hours of
// work do not end at a mistake that could be seen at the start.

#include <map>
#include <string>

#include "retort/pipeline/pipeline.h"
#include "retort/pipeline/stages.h"

namespace retort::pipeline {

/// The stages that are not finished, by name; those whose models are still to be made cannot run yet.
using CheckedStages = std::map<std::string, ResolvedStage>;

/// Resolves the stages that are not finished and looks at their sources, models, tokenizers, lengths of
/// sequences and memory.  Warns of what makes figures too good.  Throws UsageError, DataError, ModelError or
/// MemoryError.
CheckedStages preflight(const PlanContext& context, const RunRequest& request);

/// What preflight() could not look at before a model had written it: that a stage has held-out documents, and
/// measures none that the run learns from.  `resolved`: the stage as it was before the run, or null.  Throws
/// as preflight().
void check_written_text(const PlanContext& context, const RunRequest& request, const recipe::Stage& stage,
                        const ResolvedStage* resolved);

}  // namespace retort::pipeline
