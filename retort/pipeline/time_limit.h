#pragma once
// Which of several models give texts their next token in the time that a target allows, on this machine.

#include <vector>

#include "retort/base/json.h"
#include "retort/pipeline/context.h"
#include "retort/pipeline/stages.h"

namespace retort::pipeline {

struct TimedModels {
  double limit_seconds = 0;
  std::vector<double> seconds;  ///< of a token, of each model
  base::Json conditions;        ///< {"batch", "context", "dtype", "device", "threads", "teacher_seconds"}

  bool meets(std::size_t model) const { return seconds[model] <= limit_seconds; }
};

/// Rank 0 makes texts with each model in turn, or reads what it measured before of the same models; all ranks
/// get the same.  The teacher is timed where the target of the stage is a share of its time.  Throws what
/// opening a model throws, and UsageError for a context that one is not made for.  Collective.
TimedModels timed_models(const Context& context, const recipe::Stage& stage,
                         const std::vector<base::Path>& models);

/// Of timing one model.
shard::MemoryPlan timing_plan(const PlanContext& context, const recipe::Stage& stage,
                              const architecture::Config& model);

}  // namespace retort::pipeline
