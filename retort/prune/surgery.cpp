#include "retort/prune/surgery.h"

#include <ATen/ATen.h>

#include "retort/base/error.h"
#include "retort/model/sparsity.h"
#include "retort/model/tokens.h"

namespace retort::prune {
namespace {

using architecture::Layout;
using architecture::Role;

at::Tensor kept_part(const at::Tensor& values, Role role, const at::Tensor& channels) {
  switch (role) {
    case Role::gate:
    case Role::up:
      return values.index_select(0, channels);
    case Role::down:
      return values.index_select(1, channels);
    default:
      return values;
  }
}

// The unit of the input that unit `unit` of the smaller model comes from.
std::size_t source_unit(const model::Weights& input, const architecture::Unit& unit,
                        const Candidate& candidate) {
  switch (unit.kind) {
    case architecture::Unit::Kind::embedding:
      return 0;
    case architecture::Unit::Kind::head:
      return static_cast<std::size_t>(input.layout.head_unit());
    case architecture::Unit::Kind::block:
      break;
  }
  return static_cast<std::size_t>(
      Layout::block_unit(candidate.blocks[static_cast<std::size_t>(unit.block_index)]));
}

void copy_unit(const model::Weights& input, std::size_t from, model::Weights& output, std::size_t to,
               const at::Tensor& channels) {
  const auto& source = input.layout.units[from];
  for (const auto& target : output.layout.units[to].tensors) {
    const auto* tensor = source.find(target.role);
    base::ensure(tensor != nullptr, "a smaller model has no tensor that the larger one lacks");
    output.tensor(to, target).copy_(kept_part(input.tensor(from, *tensor), target.role, channels));
  }
}

// Layers that were sparse and still are, under their new names.
std::vector<std::string> still_sparse(const model::Weights& input, const model::Weights& output,
                                      const Candidate& candidate) {
  std::vector<std::string> names;
  if (input.lineage.sparse_layers.empty()) return names;
  const auto pattern = model::parse_pattern(input.lineage.pattern);
  for (std::size_t unit = 0; unit < output.layout.units.size(); ++unit) {
    const auto& source = input.layout.units[source_unit(input, output.layout.units[unit], candidate)];
    for (const auto& tensor : output.layout.units[unit].tensors) {
      const auto& listed = input.lineage.sparse_layers;
      const bool was_sparse =
          std::find(listed.begin(), listed.end(), source.find(tensor.role)->name) != listed.end();
      if (was_sparse && model::holds(pattern, output.tensor(unit, tensor))) names.push_back(tensor.name);
    }
  }
  return names;
}

}  // namespace

model::Lineage composed_lineage(const model::Lineage& input, const Candidate& candidate) {
  model::Lineage lineage;
  lineage.teacher_blocks = input.teacher_blocks;
  for (std::size_t i = 0; i < candidate.blocks.size(); ++i) {
    const auto block = static_cast<std::size_t>(candidate.blocks[i]);
    lineage.blocks.push_back(input.blocks[block]);
    auto& channels = lineage.channels.emplace_back();
    for (const auto channel : candidate.channels[i])
      channels.push_back(input.channels[block][static_cast<std::size_t>(channel)]);
  }
  return lineage;
}

model::Weights sliced(const model::Weights& input, const Candidate& candidate) {
  model::Weights output;
  output.config = config_of(input.config, candidate);
  output.layout = architecture::make_layout(output.config);
  output.lineage = composed_lineage(input.lineage, candidate);
  output.file_dtype = input.file_dtype;
  const auto options = input.units.front().options();
  for (std::size_t unit = 0; unit < output.layout.units.size(); ++unit) {
    const auto& shape = output.layout.units[unit];
    output.units.push_back(at::zeros({shape.size}, options));
    at::Tensor channels;
    if (shape.kind == architecture::Unit::Kind::block)
      channels = model::index_tensor(candidate.channels[static_cast<std::size_t>(shape.block_index)],
                                     options.device());
    copy_unit(input, source_unit(input, shape, candidate), output, unit, channels);
  }
  output.lineage.sparse_layers = still_sparse(input, output, candidate);
  if (!output.lineage.sparse_layers.empty()) output.lineage.pattern = input.lineage.pattern;
  return output;
}

}  // namespace retort::prune
