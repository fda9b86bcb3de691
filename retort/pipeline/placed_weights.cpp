#include "retort/pipeline/placed_weights.h"

#include "retort/architecture/counts.h"

namespace retort::pipeline {

PlacedWeights placed_weights(const Place& place, const WeightsToPlace& weights) {
  auto memory = weights.plan(false);
  memory.share(weights.item, place.ranks.of_common_memory);
  const auto available_bytes = place.bytes_of_rank();
  if (place.device.is_cpu() || memory.total_bytes() <= available_bytes) return {std::move(memory)};
  auto without_weights = weights.plan(true);
  if (without_weights.total_bytes() >= memory.total_bytes()) return {std::move(memory)};  // a tiny model
  if (without_weights.total_bytes() > available_bytes) return {std::move(without_weights), true};
  const auto copies = place.ranks.copies_of_machine;
  const auto parameters = copies * architecture::num_parameters(weights.model) + weights.made_parameters;
  shard::require_fits({{{"weights that the accelerator has no room for, in the memory of the machine",
                         parameters * std::int64_t{sizeof(float)}}},
                       copies > 1 ? "use a machine with more, or fewer ranks of it, which have none in common"
                                  : "use a machine with more"},
                      place.machine_bytes);
  return {std::move(without_weights), true};
}

std::int64_t memory_of_rank(const Place& place, const architecture::Config& model) {
  if (place.ranks.of_common_memory == 1) return place.bytes_of_rank();
  const auto common_bytes = architecture::num_parameters(model) * std::int64_t{sizeof(float)};
  return common_bytes + (place.available_bytes - common_bytes) / place.ranks.of_memory;
}

}  // namespace retort::pipeline
