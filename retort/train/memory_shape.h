#pragma once
// What decides the memory of a training stage, before anything is allocated.

#include "retort/loss/losses.h"
#include "retort/optim/weight_rule.h"
#include "retort/shard/engine.h"
#include "retort/shard/memory_plan.h"
#include "retort/shard/parameters.h"
#include "retort/train/options.h"

namespace retort::train {

/// What a training stage holds, and how its steps go by that.
struct StepPlan {
  shard::MemoryPlan memory;
  shard::EngineOptions engine;
  std::int64_t texts_at_once = 1;  ///< that the student writes, where it does
};

/// Of the rank that has most of a step.  `available_bytes` decide whether activations are kept, where the
/// options leave that open; where they do not suffice, the plan says what to do.
StepPlan plan_steps(const TrainOptions& options, const architecture::Config& student,
                    const architecture::Config* teacher, const loss::Losses& losses,
                    const optim::RuleNeeds& rule, at::ScalarType dtype, at::Device device,
                    std::int64_t available_bytes, shard::RankCounts ranks = {});

}  // namespace retort::train
