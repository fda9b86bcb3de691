#include "retort/model/sparsity.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <charconv>

#include "retort/base/error.h"
#include "retort/model/block.h"

namespace retort::model {
namespace {

bool among(std::span<const std::string> layers, const std::string& name) {
  return std::ranges::find(layers, name) != layers.end();
}

}  // namespace

Pattern parse_pattern(const std::string& text) {
  Pattern pattern{0, 0};
  const char* end = text.data() + text.size();
  const auto kept = std::from_chars(text.data(), end, pattern.kept);
  bool sound = kept.ec == std::errc() && kept.ptr != end && *kept.ptr == ':';
  if (sound) {
    const auto group = std::from_chars(kept.ptr + 1, end, pattern.group);
    sound = group.ec == std::errc() && group.ptr == end;
  }
  base::require<base::UsageError>(
      sound && pattern.kept >= 1 && pattern.kept < pattern.group && pattern.group <= 64,
      "pattern: expected n:m with 1 <= n < m <= 64, found '", text, "'; write \"2:4\".");
  return pattern;
}

bool holds(const Pattern& pattern, const at::Tensor& weight_RC) {
  if (weight_RC.size(1) % pattern.group != 0) return false;
  const auto groups_RGM = weight_RC.ne(0).unflatten(1, {-1, pattern.group});
  return groups_RGM.sum(-1, /*keepdim=*/false, at::kByte).le(pattern.kept).all().item<bool>();
}

void check_pattern(const Weights& weights) {
  for (std::size_t unit = 0; unit < weights.units.size(); ++unit)
    check_pattern(weights.layout, weights.lineage, unit, weights.units[unit]);
}

void check_pattern(const architecture::Layout& layout, const Lineage& lineage, std::size_t unit,
                   const at::Tensor& flat) {
  if (lineage.sparse_layers.empty()) return;
  const auto pattern = parse_pattern(lineage.pattern);
  for (const auto& tensor : layout.units[unit].tensors) {
    if (!among(lineage.sparse_layers, tensor.name)) continue;
    base::require<base::ValidationError>(
        holds(pattern, flat.narrow(0, tensor.offset, tensor.numel).view(tensor.shape)), tensor.name,
        ": more than ", pattern.kept, " of ", pattern.group,
        " neighbouring weights are not zero, but the model says ", lineage.pattern, "; sparsify it again.");
  }
}

at::Tensor mask_of_part(const architecture::Layout& layout, const Lineage& lineage, std::size_t unit,
                        std::int64_t begin, const at::Tensor& values) {
  at::Tensor mask;
  for (const auto& name : lineage.sparse_layers) {
    const auto place = layout.find(name);
    base::require<base::ModelError>(place.has_value(), "the lineage names the sparse layer ", name,
                                    ", which the model does not have; delete ", kLineageFile,
                                    " to forget it.");
    if (place->unit != unit) continue;
    const auto& tensor = layout.at(*place);
    const auto from = std::max(tensor.offset, begin);
    const auto count = std::min(tensor.offset + tensor.numel, begin + values.numel()) - from;
    if (count <= 0) continue;
    if (!mask.defined()) mask = at::ones({values.numel()}, values.options().dtype(at::kByte));
    mask.narrow(0, from - begin, count).copy_(values.narrow(0, from - begin, count).ne(0));
  }
  return mask;
}

}  // namespace retort::model
