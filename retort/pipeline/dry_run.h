#pragma once
// What `--dry-run` says of each stage: its memory, its work and the time that it takes here.

#include <string>

#include "retort/pipeline/preflight.h"
#include "retort/pipeline/stages.h"

namespace retort::pipeline {

/// Describes the stages of a recipe, or one of them, which preflight has resolved.  Measures how fast this
/// machine multiplies, for half a second in each type that the stages compute in.  Throws ModelError.
std::string dry_run(const PlanContext& context, const CheckedStages& stages, const std::string& only_stage);

}  // namespace retort::pipeline
