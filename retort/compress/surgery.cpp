#include "retort/compress/surgery.h"

#include <ATen/ATen.h>

#include <cmath>

#include "retort/base/error.h"
#include "retort/compress/parts.h"
#include "retort/model/sparsity.h"
#include "retort/model/tokens.h"

namespace retort::compress {
namespace {

using architecture::Layout;
using architecture::Role;

// Without some hidden features a norm divides a sum over the others by a smaller number, and eps grows in
// proportion.  Weights grow with it: those of norms over the features, and those that make what other norms
// of the same eps read, which keep all their inputs.
bool grows(Role role, const architecture::Block& shape) {
  const bool normalised = shape.attention && shape.attention->kind.norm != architecture::QueryKeyNorm::none;
  return architecture::is_hidden_norm(role) ||
         (normalised &&
          (role == Role::query || role == Role::key || role == Role::query_bias || role == Role::key_bias));
}

// A part of the rows, then of the columns.
at::Tensor kept_part(at::Tensor values, Role role, const architecture::Config& input,
                     const architecture::Kept& kept, std::int64_t block) {
  const auto shape = block < 0 ? architecture::Block() : input.blocks[static_cast<std::size_t>(block)];
  for (const auto* part : parts()) {
    if (part->of_blocks() && block < 0) continue;
    const auto count = part->count(input, block);
    const auto left = part->left(kept, block);
    if (std::ssize(left) == count) continue;
    const auto select = [&](std::int64_t dim, std::int64_t each) {
      if (each > 0)
        values =
            values.index_select(dim, model::index_tensor(architecture::rows_of(left, each), values.device()));
    };
    select(0, part->rows_each(shape, role));
    if (values.dim() > 1) select(1, part->columns_each(shape, role));
    if (grows(role, shape) && part == &kHiddenFeatures)
      values = values * std::sqrt(static_cast<double>(count) / static_cast<double>(left.size()));
  }
  return values;
}

// The unit of the input that unit `unit` of the smaller model comes from.
std::size_t source_unit(const model::Weights& input, const architecture::Unit& unit,
                        const architecture::Kept& candidate) {
  switch (unit.kind) {
    case architecture::Unit::Kind::embedding:
      return 0;
    case architecture::Unit::Kind::head:
      return static_cast<std::size_t>(input.layout.head_unit());
    case architecture::Unit::Kind::block:
      break;
  }
  return static_cast<std::size_t>(
      Layout::block_unit(candidate.blocks[static_cast<std::size_t>(unit.block_index)].number));
}

void copy_unit(const model::Weights& input, std::size_t from, model::Weights& output, std::size_t to,
               const architecture::Kept& kept) {
  const auto& source = input.layout.units[from];
  for (const auto& target : output.layout.units[to].tensors) {
    const auto* tensor = source.find(target.role);
    base::ensure(tensor != nullptr, "a smaller model has no tensor that the larger one lacks");
    output.tensor(to, target)
        .copy_(kept_part(input.tensor(from, *tensor), target.role, input.config, kept, source.block_index));
  }
}

// Layers that were sparse and still are, under their new names.
std::vector<std::string> still_sparse(const model::Weights& input, const model::Weights& output,
                                      const architecture::Kept& candidate) {
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

model::Lineage composed_lineage(const model::Weights& input, const architecture::Kept& candidate) {
  model::Lineage lineage;
  lineage.teacher_blocks = input.lineage.teacher_blocks;
  lineage.teacher_hidden = input.lineage.teacher_hidden;
  lineage.kept = architecture::composed(input.lineage.kept, candidate);
  return lineage;
}

model::Weights sliced(const model::Weights& input, const architecture::Kept& candidate) {
  model::Weights output;
  output.config = architecture::config_of(input.config, candidate);
  output.layout = architecture::make_layout(output.config);
  output.lineage = composed_lineage(input, candidate);
  output.file_dtype = input.file_dtype;
  const auto options = input.units.front().options();
  model::compute_like(input, output);
  for (std::size_t unit = 0; unit < output.layout.units.size(); ++unit) {
    const auto& shape = output.layout.units[unit];
    output.units.push_back(at::zeros({shape.size}, options));
    copy_unit(input, source_unit(input, shape, candidate), output, unit, candidate);
  }
  output.lineage.sparse_layers = still_sparse(input, output, candidate);
  if (!output.lineage.sparse_layers.empty()) output.lineage.pattern = input.lineage.pattern;
  return output;
}

}  // namespace retort::compress
