#include "retort/compress/surgery.h"

#include <ATen/ATen.h>

#include "retort/base/error.h"
#include "retort/compress/parts.h"
#include "retort/model/sparsity.h"
#include "retort/model/tokens.h"

namespace retort::compress {
namespace {

using architecture::Layout;
using architecture::Role;

// A part of the rows, then of the columns.
at::Tensor kept_part(at::Tensor values, Role role, const architecture::Config& input,
                     const architecture::Kept& kept, std::int64_t block) {
  const auto shape = block < 0 ? architecture::Block() : input.blocks[static_cast<std::size_t>(block)];
  std::vector<std::vector<std::int64_t>> places;
  for (const auto size : values.sizes()) places.push_back(architecture::counted(size));
  double factor = 1;
  for (const auto kind : architecture::kPartKinds) {
    if (architecture::half_of(kind) && block < 0) continue;
    const auto& part = part_of(kind);
    const auto count = architecture::count_of(input, kind, block);
    const auto left = architecture::numbers_of(kept, kind, block);
    if (std::ssize(left) == count) continue;
    places[0] = kept_places(std::move(places[0]), part.rows_each(shape, role), count, left);
    if (places.size() > 1)
      places[1] = kept_places(std::move(places[1]), part.columns_each(shape, role), count, left);
    factor *= part.factor(shape, role, count, std::ssize(left));
  }
  for (std::int64_t dim = 0; dim < std::ssize(places); ++dim)
    if (const auto& kept_here = places[static_cast<std::size_t>(dim)];
        std::ssize(kept_here) < values.size(dim))
      values = values.index_select(dim, model::index_tensor(kept_here, values.device()));
  return factor == 1 ? values : values * factor;
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
