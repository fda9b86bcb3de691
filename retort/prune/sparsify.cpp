#include "retort/prune/sparsify.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/model/dtype.h"
#include "retort/prune/sparse_gpt.h"
#include "retort/prune/stop.h"

namespace retort::prune {
namespace {

using architecture::Role;
using model::Tap;

struct NamedRole {
  std::string name;
  Role role;
};
const std::array<NamedRole, 7> kLinearLayers = {{{"q_proj", Role::query},
                                                 {"k_proj", Role::key},
                                                 {"v_proj", Role::value},
                                                 {"o_proj", Role::output},
                                                 {"gate_proj", Role::gate},
                                                 {"up_proj", Role::up},
                                                 {"down_proj", Role::down}}};

// Layers of one input share its Hessian and factor; in the order in which a block computes them.
struct LayerGroup {
  Tap tap;
  std::vector<Role> roles;
};
const std::array<LayerGroup, 4> kGroups = {{{Tap::qkv_input, {Role::query, Role::key, Role::value}},
                                            {Tap::output_input, {Role::output}},
                                            {Tap::gate_up_input, {Role::gate, Role::up}},
                                            {Tap::down_input, {Role::down}}}};

std::vector<Role> chosen_roles(const SparsifyOptions& options) {
  std::vector<Role> roles;
  if (options.layers.empty())
    for (const auto& layer : kLinearLayers) roles.push_back(layer.role);
  std::vector<std::string> names;
  for (const auto& layer : kLinearLayers) names.push_back(layer.name);
  for (const auto& name : options.layers) {
    const auto found = std::find(names.begin(), names.end(), name);
    const auto near = base::nearest(name, names);
    base::require<base::UsageError>(
        found != names.end(), "sparsify: layers: no linear layer is called '", name,
        near.empty() ? "'" : "', did you mean '" + near + "'",
        "; choose from q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj.");
    roles.push_back(kLinearLayers[static_cast<std::size_t>(found - names.begin())].role);
  }
  return roles;
}

std::vector<bool> chosen_blocks(const SparsifyOptions& options, std::size_t count) {
  std::vector<bool> chosen(count, options.blocks.empty());
  for (const auto block : options.blocks) {
    base::require<base::UsageError>(block >= 0 && block < static_cast<std::int64_t>(count),
                                    "sparsify: blocks: expected numbers from 0 to ", count - 1, ", found ",
                                    block, ".");
    chosen[static_cast<std::size_t>(block)] = true;
  }
  return chosen;
}

class Sparsifier {
 public:
  Sparsifier(const model::Weights& input, const std::vector<CalibrationDomain>& domains,
             const SparsifyOptions& options, record::Observer& observer)
      : observer_(observer),
        options_(options),
        sweep_{model::parse_pattern(options.pattern), options.block_size, options.dampening_fraction},
        roles_(chosen_roles(options)),
        blocks_(chosen_blocks(options, input.config.blocks.size())),
        weights_(model::converted(input, input.units.front().scalar_type())),
        batches_(calibration_batches(domains, input.config, input.units.front().device())) {
    check_layers();
    for (const auto& batch : batches_) hidden_ND_.push_back(embedded(weights_, batch));
  }

  SparsifyResult run();

 private:
  bool is_chosen(const architecture::Unit& unit, const architecture::Tensor& tensor) const {
    return unit.block_index >= 0 && blocks_[static_cast<std::size_t>(unit.block_index)] &&
           std::find(roles_.begin(), roles_.end(), tensor.role) != roles_.end();
  }
  void check_layers();
  void sparsify_group(std::int64_t block, const LayerGroup& group);
  HessianSums collected(std::int64_t block, Tap tap) const;
  void sparsify_layer(std::size_t unit, const architecture::Tensor& tensor, const at::Tensor& hessian_CC,
                      const HessianFactor& factor);
  void advance(std::int64_t block);
  void list_sparse_layers();
  double zeros_fraction() const;

  record::Observer& observer_;
  const SparsifyOptions& options_;
  SweepOptions sweep_;
  std::vector<Role> roles_;
  std::vector<bool> blocks_;
  model::Weights weights_;
  std::vector<CalibrationBatch> batches_;
  std::vector<at::Tensor> hidden_ND_;  // per batch: input of the block at hand
  base::Json layers_ = base::Json::array();
  std::int64_t chosen_ = 0;
};

// Every refusal comes before the first layer is touched.
void Sparsifier::check_layers() {
  const auto group = sweep_.pattern.group;
  base::require<base::UsageError>(sweep_.block_size > 0 && sweep_.block_size % group == 0,
                                  "sparsify: block_size: expected a multiple of ", group, ", found ",
                                  sweep_.block_size, "; 128 is usual.");
  base::require<base::UsageError>(sweep_.dampening_fraction > 0 && sweep_.dampening_fraction <= 1,
                                  "sparsify: dampening_fraction: expected above 0 and at most 1, found ",
                                  sweep_.dampening_fraction, "; 0.01 is usual.");
  const auto& lineage = weights_.lineage;
  base::require<base::UsageError>(lineage.sparse_layers.empty() || lineage.pattern == options_.pattern,
                                  "sparsify: the model already has layers with pattern ", lineage.pattern,
                                  ", found a recipe with ", options_.pattern, "; use one pattern.");
  for (const auto& unit : weights_.layout.units)
    for (const auto& tensor : unit.tensors) {
      if (!is_chosen(unit, tensor)) continue;
      ++chosen_;
      base::require<base::UsageError>(tensor.cols() % group == 0, "sparsify: ", tensor.name, " has ",
                                      tensor.cols(), " columns, expected a multiple of ", group,
                                      "; leave this layer out.");
    }
  base::require<base::UsageError>(
      chosen_ > 0, "sparsify: the chosen blocks have none of the chosen layers; choose others.");
}

HessianSums Sparsifier::collected(std::int64_t block, Tap tap) const {
  HessianSums sums;
  const auto views = weights_of_block(weights_, block);
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    const model::BlockHooks hooks{.tap =
                                      [&](Tap at, const at::Tensor& x_NC) {
                                        if (at == tap) accumulate_hessian(sums, x_NC, batches_[i].sequences);
                                      },
                                  .channel_mask_I = {}};
    model::block_forward(views, weights_.config.rms_norm_eps, hidden_ND_[i], batches_[i].layout, nullptr,
                         &hooks);
  }
  return sums;
}

void Sparsifier::sparsify_group(std::int64_t block, const LayerGroup& group) {
  const auto unit = static_cast<std::size_t>(architecture::Layout::block_unit(block));
  const auto& shape = weights_.layout.units[unit];
  std::vector<const architecture::Tensor*> tensors;
  for (const auto role : group.roles)
    if (const auto* tensor = shape.find(role); tensor && is_chosen(shape, *tensor)) tensors.push_back(tensor);
  if (tensors.empty()) return;
  stop_if_asked(observer_, "sparsify");
  const auto hessian_CC = hessian_of(collected(block, group.tap), tensors.front()->name);
  const auto factor = factorise(hessian_CC, sweep_.dampening_fraction, tensors.front()->name);
  if (factor.dampening_fraction > sweep_.dampening_fraction)
    observer_.message(
        record::Level::warning,
        base::join(tensors.front()->name, ": the Hessian needed a dampening of ", factor.dampening_fraction,
                   " instead of ", sweep_.dampening_fraction, "; more calibration text would help."));
  for (const auto* tensor : tensors) sparsify_layer(unit, *tensor, hessian_CC, factor);
}

void Sparsifier::sparsify_layer(std::size_t unit, const architecture::Tensor& tensor,
                                const at::Tensor& hessian_CC, const HessianFactor& factor) {
  const auto start = std::chrono::steady_clock::now();
  auto weight_RC = weights_.tensor(unit, tensor);
  const auto result = sparsify_weight(weight_RC, hessian_CC, factor, sweep_, tensor.name);
  // What follows shall see the values that the file will hold.
  const auto saved_RC = result.weight_RC.to(model::scalar_type(weights_.file_dtype));
  base::require<base::ValidationError>(
      saved_RC.isfinite().all().item<bool>() && model::holds(sweep_.pattern, saved_RC), tensor.name,
      ": is not finite or not ", options_.pattern, " after the cast to the file's type; nothing was saved.");
  weight_RC.copy_(saved_RC);
  layers_.push_back(
      {{"name", tensor.name},
       {"rows", tensor.rows()},
       {"cols", tensor.cols()},
       {"dampening", result.dampening_fraction},
       {"loss", result.loss},
       {"identity_residual", result.identity_residual},
       {"relative_error", result.relative_error},
       {"seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()}});
  observer_.progress("sparsify: layers", static_cast<std::int64_t>(layers_.size()), chosen_);
}

void Sparsifier::advance(std::int64_t block) {
  const auto views = weights_of_block(weights_, block);
  for (std::size_t i = 0; i < batches_.size(); ++i)
    hidden_ND_[i] =
        model::block_forward(views, weights_.config.rms_norm_eps, hidden_ND_[i], batches_[i].layout);
}

// In the order of the layout, those of earlier stages included.
void Sparsifier::list_sparse_layers() {
  std::vector<std::string> names;
  const auto& before = weights_.lineage.sparse_layers;
  for (const auto& unit : weights_.layout.units)
    for (const auto& tensor : unit.tensors)
      if (is_chosen(unit, tensor) || std::find(before.begin(), before.end(), tensor.name) != before.end())
        names.push_back(tensor.name);
  weights_.lineage.sparse_layers = std::move(names);
  weights_.lineage.pattern = options_.pattern;
}

double Sparsifier::zeros_fraction() const {
  std::int64_t zeros = 0, all = 0;
  for (const auto& layer : layers_) {
    const auto values = weights_.tensor(layer["name"].get<std::string>());
    zeros += values.eq(0).sum().item<std::int64_t>();
    all += values.numel();
  }
  return static_cast<double>(zeros) / static_cast<double>(all);
}

SparsifyResult Sparsifier::run() {
  const auto start = std::chrono::steady_clock::now();
  const auto last =
      std::find(blocks_.rbegin(), blocks_.rend(), true).base() - blocks_.begin();  // one past it
  for (std::int64_t block = 0; block < last; ++block) {
    if (blocks_[static_cast<std::size_t>(block)])
      for (const auto& group : kGroups) sparsify_group(block, group);
    if (block + 1 < last) advance(block);
  }
  list_sparse_layers();
  model::check_pattern(weights_);
  SparsifyResult result;
  result.report = {
      {"kind", "sparsify"},
      {"pattern", options_.pattern},
      {"layers", layers_},
      {"zeros_fraction", zeros_fraction()},
      {"seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()}};
  result.weights = std::move(weights_);
  return result;
}

}  // namespace

SparsifyResult sparsify(const model::Weights& input, const std::vector<CalibrationDomain>& domains,
                        const SparsifyOptions& options, record::Observer& observer) {
  return Sparsifier(input, domains, options, observer).run();
}

}  // namespace retort::prune
