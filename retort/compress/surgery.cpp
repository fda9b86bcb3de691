#include "retort/compress/surgery.h"

#include <ATen/ATen.h>

#include <cmath>

#include "retort/base/error.h"
#include "retort/model/sparsity.h"
#include "retort/model/tokens.h"

namespace retort::compress {
namespace {

using architecture::Layout;
using architecture::Role;

// What stays, as indices; undefined: all.
struct Kept {
  at::Tensor hidden, queries, keys, channels;

  const at::Tensor& rows(Role role) const {
    switch (role) {
      case Role::query:
        return queries;
      case Role::key:
      case Role::value:
        return keys;
      case Role::gate:
      case Role::up:
        return channels;
      case Role::embedding:
      case Role::head:
        return all;
      default:
        return hidden;
    }
  }
  const at::Tensor& columns(Role role) const {
    return role == Role::output ? queries : role == Role::down ? channels : hidden;
  }
  at::Tensor all = {};
};

at::Tensor kept_part(const at::Tensor& values, Role role, const Kept& kept) {
  if (architecture::is_norm(role)) {
    if (!kept.hidden.defined()) return values;
    const auto ratio = static_cast<double>(values.numel()) / static_cast<double>(kept.hidden.numel());
    return values.index_select(0, kept.hidden) * std::sqrt(ratio);
  }
  auto part = values;
  if (kept.rows(role).defined()) part = part.index_select(0, kept.rows(role));
  if (kept.columns(role).defined()) part = part.index_select(1, kept.columns(role));
  return part;
}

Kept kept_of(const architecture::Config& input, const Candidate& candidate, const architecture::Unit& unit,
             at::Device device) {
  Kept kept;
  if (!candidate.hidden.empty()) kept.hidden = model::index_tensor(candidate.hidden, device);
  if (unit.kind != architecture::Unit::Kind::block) return kept;
  const auto position = static_cast<std::size_t>(unit.block_index);
  const auto block = candidate.blocks[position];
  kept.channels = model::index_tensor(candidate.channels[position], device);
  if (const auto& shape = input.blocks[static_cast<std::size_t>(block)].attention) {
    kept.queries = model::index_tensor(kept_attention(input, candidate, block), device);
    kept.keys = model::index_tensor(rows_of(kept_groups(input, candidate, block), shape->head_dim), device);
  }
  return kept;
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
               const Kept& kept) {
  const auto& source = input.layout.units[from];
  for (const auto& target : output.layout.units[to].tensors) {
    const auto* tensor = source.find(target.role);
    base::ensure(tensor != nullptr, "a smaller model has no tensor that the larger one lacks");
    output.tensor(to, target).copy_(kept_part(input.tensor(from, *tensor), target.role, kept));
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

std::vector<std::int64_t> chosen(const std::vector<std::int64_t>& numbers,
                                 const std::vector<std::int64_t>& places) {
  std::vector<std::int64_t> result;
  for (const auto place : places) result.push_back(numbers[static_cast<std::size_t>(place)]);
  return result;
}

}  // namespace

model::Lineage composed_lineage(const model::Weights& weights, const Candidate& candidate) {
  const auto& input = weights.lineage;
  model::Lineage lineage;
  lineage.teacher_blocks = input.teacher_blocks;
  lineage.teacher_hidden = input.teacher_hidden;
  lineage.hidden = candidate.hidden.empty() ? input.hidden : chosen(input.hidden, candidate.hidden);
  for (std::size_t i = 0; i < candidate.blocks.size(); ++i) {
    const auto block = static_cast<std::size_t>(candidate.blocks[i]);
    lineage.blocks.push_back(input.blocks[block]);
    lineage.channels.push_back(chosen(input.channels[block], candidate.channels[i]));
    lineage.kv_groups.push_back(
        chosen(input.kv_groups[block], kept_groups(weights.config, candidate, candidate.blocks[i])));
  }
  return lineage;
}

model::Weights sliced(const model::Weights& input, const Candidate& candidate) {
  model::Weights output;
  output.config = config_of(input.config, candidate);
  output.layout = architecture::make_layout(output.config);
  output.lineage = composed_lineage(input, candidate);
  output.file_dtype = input.file_dtype;
  const auto options = input.units.front().options();
  for (std::size_t unit = 0; unit < output.layout.units.size(); ++unit) {
    const auto& shape = output.layout.units[unit];
    output.units.push_back(at::zeros({shape.size}, options));
    copy_unit(input, source_unit(input, shape, candidate), output, unit,
              kept_of(input.config, candidate, shape, options.device()));
  }
  output.lineage.sparse_layers = still_sparse(input, output, candidate);
  if (!output.lineage.sparse_layers.empty()) output.lineage.pattern = input.lineage.pattern;
  return output;
}

}  // namespace retort::compress
