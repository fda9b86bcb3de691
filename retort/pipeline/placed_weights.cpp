#include "retort/pipeline/placed_weights.h"

namespace retort::pipeline {

PlacedWeights placed_weights(const Place& place, std::int64_t weight_bytes,
                             const std::function<shard::MemoryPlan(bool offloaded)>& plan) {
  auto memory = plan(false);
  if (place.device.is_cpu() || memory.total_bytes() <= place.available_bytes / place.ranks.of_memory)
    return {std::move(memory)};
  auto without_weights = plan(true);
  if (without_weights.total_bytes() >= memory.total_bytes()) return {std::move(memory)};  // a tiny model
  const auto bytes = weight_bytes * place.ranks.copies_of_machine;
  shard::require_fits(
      {{{"weights that the accelerators have no room for, in the memory of the machine", bytes}},
       "use a machine with more, or one rank of it"},
      available_bytes({}, at::kCPU));
  return {std::move(without_weights), true};
}

}  // namespace retort::pipeline
