#include "retort/sparsify/chosen_layers.h"

#include <algorithm>
#include <array>

#include "retort/architecture/kept.h"
#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/compress/group_mask.h"

namespace retort::sparsify {
namespace {

using architecture::Role;
using model::Tap;

struct LinearLayer {
  const char* name;
  Role role;
  Tap input;
};
constexpr std::array<LinearLayer, 7> kLinearLayers = {{{"q_proj", Role::query, Tap::qkv_input},
                                                       {"k_proj", Role::key, Tap::qkv_input},
                                                       {"v_proj", Role::value, Tap::qkv_input},
                                                       {"o_proj", Role::output, Tap::output_input},
                                                       {"gate_proj", Role::gate, Tap::gate_up_input},
                                                       {"up_proj", Role::up, Tap::gate_up_input},
                                                       {"down_proj", Role::down, Tap::down_input}}};
constexpr std::array kTaps = {Tap::qkv_input, Tap::output_input, Tap::gate_up_input, Tap::down_input};

void check_names(const SparsifyOptions& options) {
  std::vector<std::string> names;
  for (const auto& layer : kLinearLayers) names.emplace_back(layer.name);
  for (const auto& name : options.layers) {
    const auto near = base::nearest(name, names);
    base::require<base::UsageError>(
        std::find(names.begin(), names.end(), name) != names.end(),
        "sparsify: layers: no linear layer is called '", name,
        near.empty() ? "'" : "', did you mean '" + near + "'",
        "; choose from q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj.");
  }
}

void check_numbers(const model::Weights& weights, const SparsifyOptions& options, std::int64_t group) {
  for (const auto block : options.blocks)
    base::require<base::UsageError>(block >= 0 && block < std::ssize(weights.config.blocks),
                                    "sparsify: blocks: expected numbers from 0 to ",
                                    weights.config.blocks.size() - 1, ", found ", block, ".");
  base::require<base::UsageError>(options.block_size > 0 && options.block_size % group == 0,
                                  "sparsify: block_size: expected a multiple of ", group, ", found ",
                                  options.block_size, "; 128 is usual.");
  base::require<base::UsageError>(options.dampening_fraction > 0 && options.dampening_fraction <= 1,
                                  "sparsify: dampening_fraction: expected above 0 and at most 1, found ",
                                  options.dampening_fraction, "; 0.01 is usual.");
  const auto& lineage = weights.lineage;
  base::require<base::UsageError>(lineage.sparse_layers.empty() || lineage.pattern == options.pattern,
                                  "sparsify: the model already has layers with pattern ", lineage.pattern,
                                  ", found a recipe with ", options.pattern, "; use one pattern.");
}

bool is_wanted(const LinearLayer& layer, const SparsifyOptions& options) {
  const auto& names = options.layers;
  return names.empty() || std::find(names.begin(), names.end(), layer.name) != names.end();
}

}  // namespace

std::vector<const architecture::Tensor*> chosen_tensors(const architecture::Layout& layout,
                                                        const SparsifyOptions& options) {
  const auto& blocks = options.blocks;
  std::vector<const architecture::Tensor*> chosen;
  for (const auto& unit : layout.units) {
    const bool named = blocks.empty() || std::ranges::count(blocks, unit.block_index) > 0;
    if (unit.block_index < 0 || !named) continue;
    for (const auto& layer : kLinearLayers)
      if (const auto* tensor = is_wanted(layer, options) ? unit.find(layer.role) : nullptr)
        chosen.push_back(tensor);
  }
  return chosen;
}

ChosenLayers::ChosenLayers(const model::Weights& weights, const SparsifyOptions& options)
    : layout_(weights.layout),
      blocks_(options.blocks.empty() ? architecture::counted(std::ssize(weights.config.blocks))
                                     : options.blocks) {
  const auto pattern = model::parse_pattern(options.pattern);
  check_names(options);
  check_numbers(weights, options, pattern.group);
  for (const auto* tensor : chosen_tensors(layout_, options)) {
    compress::require_groups(tensor->cols(), pattern, "sparsify: " + tensor->name);
    names_.insert(tensor->name);
  }
  base::require<base::UsageError>(
      count() > 0, "sparsify: the chosen blocks have none of the chosen layers; choose others.");
}

std::int64_t ChosenLayers::count() const {
  return std::ssize(names_);
}

bool ChosenLayers::names_block(std::int64_t block) const {
  return std::find(blocks_.begin(), blocks_.end(), block) != blocks_.end();
}

std::int64_t ChosenLayers::last_block() const {
  return *std::max_element(blocks_.begin(), blocks_.end());
}

std::vector<LayerGroup> ChosenLayers::groups(std::int64_t block) const {
  const auto& unit = layout_.units[static_cast<std::size_t>(architecture::Layout::block_unit(block))];
  std::vector<LayerGroup> groups;
  for (const auto tap : kTaps) {
    LayerGroup group{tap, {}};
    for (const auto& layer : kLinearLayers)
      if (const auto* tensor = unit.find(layer.role);
          layer.input == tap && tensor && names_.contains(tensor->name))
        group.layers.push_back(tensor);
    if (!group.layers.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace retort::sparsify
