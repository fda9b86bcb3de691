#pragma once
// What decides the memory of a training stage, before anything is allocated.

#include "retort/loss/losses.h"
#include "retort/optim/weight_rule.h"
#include "retort/shard/memory_plan.h"
#include "retort/shard/parameters.h"
#include "retort/train/options.h"

namespace retort::train {

/// On the rank that has most of a step.  `available_bytes` decide whether activations are kept, where the
/// options leave that open.
shard::MemoryShape memory_shape(const TrainOptions& options, const architecture::Config& student,
                                const architecture::Config* teacher, const loss::Losses& losses,
                                const optim::RuleNeeds& rule, at::ScalarType dtype, at::Device device,
                                std::int64_t available_bytes, shard::RankCounts ranks = {});

}  // namespace retort::train
