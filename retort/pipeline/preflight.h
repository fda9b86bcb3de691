#pragma once
// Says what is wrong with a run before it begins: nothing is made for a run that cannot succeed, and hours of
// work do not end at a mistake that could be seen at the start.

#include "retort/pipeline/pipeline.h"
#include "retort/pipeline/stages.h"

namespace retort::pipeline {

/// Looks at sources, models, tokenizers, lengths of sequences and, as far as it is known, memory of the
/// stages that are not finished, and warns of what makes figures too good.  Throws UsageError, DataError,
/// ModelError or MemoryError.
void preflight(const PlanContext& context, const RunRequest& request);

/// Throws MemoryError where the stage needs more than there is, as far as its models are known.
void require_memory(const PlanContext& context, const recipe::Stage& stage);

}  // namespace retort::pipeline
