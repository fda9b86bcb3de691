#pragma once
// Where the weights lie of a model that a stage takes statistics of.  An accelerator holds them if it can;
// else they are in the memory of the machine, once for all its ranks, and each block is copied when it
// computes.

#include <cstdint>
#include <functional>

#include "retort/pipeline/context.h"
#include "retort/shard/memory_plan.h"

namespace retort::pipeline {

struct PlacedWeights {
  shard::MemoryPlan memory;  ///< of a rank, where it computes
  bool offloaded = false;    ///< the weights are in the memory of the machine, the rest on an accelerator
};

/// `plan`: of a rank whose weights are offloaded or not; `weight_bytes`: of all values that are offloaded if
/// any.  Throws MemoryError where the machine has no room for those.
PlacedWeights placed_weights(const Place& place, std::int64_t weight_bytes,
                             const std::function<shard::MemoryPlan(bool offloaded)>& plan);

}  // namespace retort::pipeline
