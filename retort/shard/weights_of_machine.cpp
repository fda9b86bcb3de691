#include "retort/shard/weights_of_machine.h"

#include <ATen/ATen.h>

#include <memory>
#include <utility>

#include "retort/shard/common_tensors.h"

namespace retort::shard {

namespace {

MachineWeights weights_on(at::Device device, const model::UnitSource& source, at::ScalarType dtype,
                          comm::Group& group) {
  if (group.size() == 1) return {model::collected(source, dtype, device)};
  const auto machine = group.split(group.node(), "machine");
  std::shared_ptr<comm::CommonBlock> block;
  if (machine->size() > 1 && device.is_cpu())
    block = machine->common_block(source.layout.size() * static_cast<std::int64_t>(at::elementSize(dtype)));
  model::Weights weights{source.config, source.layout, source.lineage, source.file_dtype, {}};
  group.agree([&] {
    if (!block) {
      weights = model::collected(source, dtype, device);
      return;
    }
    CommonTensors tensors(block, machine->size(), dtype);
    for (std::size_t unit = 0; unit < source.layout.units.size(); ++unit) {
      weights.units.push_back(tensors.take(source.layout.units[unit].size));
      if (static_cast<int>(unit % static_cast<std::size_t>(machine->size())) == machine->rank())
        source.read(unit, 0, weights.units.back());
    }
  });
  return {std::move(weights), !block || machine->rank() == 0};
}

}  // namespace

MachineWeights weights_of_machine(const model::UnitSource& source, at::ScalarType dtype, at::Device lies_on,
                                  at::Device computes_on, comm::Group& group) {
  auto held = weights_on(lies_on, source, dtype, group);
  if (computes_on != lies_on) model::compute_with_copies(held.weights, computes_on);
  return held;
}

ReadOnlyLayout read_only_layout(const RankCounts& ranks) {
  if (ranks.of_common_memory > 1) return {ranks.of_common_memory, false};
  if (ranks.of_machine != ranks.least_of_machine) return {};
  return {ranks.of_machine, ranks.of_machine > 1};
}

ReadOnlyModel read_only_model(const model::UnitSource& source, at::ScalarType dtype, at::Device device,
                              comm::Group& group) {
  const auto layout = read_only_layout(count_ranks(group, device));
  ReadOnlyModel model;
  if (layout.gathers) {
    model.groups = make_groups(group, layout.ranks);
    model.parameters = sharded_parameters(source, Use::frozen, dtype, device, model.groups);
  } else {
    auto weights = weights_on(device, source, dtype, group).weights;
    model.parameters = resident_parameters(std::move(weights), Use::frozen, dtype);
  }
  return model;
}

}  // namespace retort::shard
