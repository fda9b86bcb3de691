#pragma once
// Where the weights lie of a model that a stage takes statistics of.  An accelerator holds them if it can;
// else they are in the memory of the machine, once for all its ranks, and each block is copied when it
// computes.

#include <cstdint>
#include <functional>
#include <string_view>

#include "retort/pipeline/context.h"
#include "retort/shard/memory_plan.h"

namespace retort::pipeline {

struct PlacedWeights {
  shard::MemoryPlan memory;  ///< of a rank, where it computes
  bool offloaded = false;    ///< the weights are in the memory of the machine, the rest on an accelerator
};

/// What a stage plans.
struct WeightsToPlace {
  const architecture::Config& model;
  std::int64_t made_parameters = 0;  ///< of models that rank 0 makes, beside it
  std::string_view item;             ///< of the plan: the model's weights, which ranks may share
  std::function<shard::MemoryPlan(bool offloaded)> plan;
};
/// In float32.  Throws MemoryError where weights that an accelerator has no room for find none in the
/// machine.
PlacedWeights placed_weights(const Place& place, const WeightsToPlace& weights);

/// What a rank may use, its machine's float32 weights of `model` among it where its ranks have them in
/// common.
std::int64_t memory_of_rank(const Place& place, const architecture::Config& model);

}  // namespace retort::pipeline
