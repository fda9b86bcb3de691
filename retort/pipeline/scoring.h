#pragma once
// A model on the held-out part of a stage's sources.

#include <memory>
#include <string>

#include "retort/eval/evaluate.h"
#include "retort/pipeline/context.h"
#include "retort/shard/memory_plan.h"
#include "retort/shard/weights_of_machine.h"

namespace retort::pipeline {

struct LoadedModel {
  base::Path path;
  shard::ReadOnlyModel weights;
  std::unique_ptr<eval::Subject> subject;
};

/// In the type that scores are computed in on the run's device.  Collective.
LoadedModel load_for_scoring(const Context& context, const std::string& name);
/// What a rank holds while it scores such a model in windows of `context` tokens; `teacher` as of
/// eval::plan_scoring.
shard::MemoryPlan scoring_plan(const architecture::Config& model, const architecture::Config* teacher,
                               std::int64_t context, at::Device device, const shard::RankCounts& ranks);
/// Every source in turn, by all ranks; `teacher` may be null, and `teacher_states`, in which it leaves its
/// states for the next model.  Collective.
eval::ModelScores held_out_scores(const Context& context, const recipe::Stage& stage,
                                  const eval::EvaluateOptions& options, const LoadedModel& model,
                                  const LoadedModel* teacher, eval::TeacherStates* teacher_states);

}  // namespace retort::pipeline
