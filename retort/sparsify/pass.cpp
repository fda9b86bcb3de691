#include "retort/sparsify/pass.h"

#include "retort/base/error.h"
#include "retort/base/machine.h"
#include "retort/record/stopped.h"

namespace retort::sparsify {
namespace {

using model::Half;
using model::Tap;

Half half_of(Tap tap) {
  return tap == Tap::qkv_input || tap == Tap::output_input ? Half::attention : Half::mlp;
}

// Of a walk that stands before the tap's half.
at::Tensor hessian_before_half(const calibrate::Walk& walk, Tap tap, const std::string& layer) {
  const bool first = tap == Tap::qkv_input || tap == Tap::gate_up_input;
  calibrate::HessianSums sums;
  for (std::size_t batch = 0; batch < walk.batches().size(); ++batch)
    calibrate::accumulate_hessian(
        sums, first ? walk.half_input_ND(batch, half_of(tap)) : walk.half_inner_NC(batch, half_of(tap)),
        walk.batches()[batch].sequences());
  return calibrate::hessian_of(sums, layer);
}

// Of a walk that stands before the block.
at::Tensor hessian_before_block(const calibrate::Walk& walk, Tap wanted, const std::string& layer) {
  calibrate::HessianSums sums;
  walk.look([&](std::size_t batch, Tap tap, const at::Tensor& x_NC) {
    if (tap == wanted) calibrate::accumulate_hessian(sums, x_NC, walk.batches()[batch].sequences());
  });
  return calibrate::hessian_of(sums, layer);
}

at::Tensor guard_hessian(const Pass& pass, Tap tap, const std::string& layer) {
  if (!pass.guard) return {};
  return pass.changes_weights ? hessian_before_half(*pass.guard, tap, layer)
                              : hessian_before_block(*pass.guard, tap, layer);
}

LayerInputs inputs_of(const Pass& pass, const LayerGroup& group, const SparsifyOptions& options,
                      record::Observer& observer) {
  const auto& first = group.layers.front()->name;
  LayerInputs inputs{
      hessian_before_half(*pass.fitted, group.tap, first), guard_hessian(pass, group.tap, first), {}};
  if (!compress::updates_weights(options.method)) return inputs;
  inputs.factor = calibrate::factorise(inputs.hessian_CC, options.dampening_fraction, first);
  if (inputs.factor->dampening_fraction > options.dampening_fraction)
    observer.message(
        record::Level::warning,
        base::join(first, ": the Hessian needed a dampening of ", inputs.factor->dampening_fraction,
                   " instead of ", options.dampening_fraction, "; more calibration text would help."));
  return inputs;
}

void finish_half(calibrate::Walk& walk, Half half) {
  for (std::size_t batch = 0; batch < walk.batches().size(); ++batch)
    walk.finish_half(batch, half, walk.half_inner_NC(batch, half));
}

// The walks that what a half is made from needs before its other half; the others wait before the block.
void finish_half(const Pass& pass, Half half) {
  finish_half(*pass.fitted, half);
  if (pass.guard && pass.changes_weights) finish_half(*pass.guard, half);
}

// {"layers": [...], "damage": ..., "seconds"}: what is kept of a block.  Text goes through it by halves, each
// once its layers are visited.
base::Json visit_block(const Pass& pass, std::int64_t block, const ChosenLayers& chosen,
                       const SparsifyOptions& options, std::int64_t& layers_done,
                       record::Observer& observer) {
  const double start = base::monotonic_seconds();
  base::Json found = {{"layers", base::Json::array()}, {"damage", nullptr}};
  const auto groups = chosen.groups(block);
  for (const auto half : {Half::attention, Half::mlp}) {
    for (const auto& group : groups) {
      if (half_of(group.tap) != half) continue;
      record::stop_if_asked(observer, "sparsify", block);
      const auto inputs = inputs_of(pass, group, options, observer);
      for (const auto* layer : group.layers) {
        found["layers"].push_back(pass.visit(*layer, inputs));
        observer.progress(pass.progress, ++layers_done, chosen.count());
      }
    }
    finish_half(pass, half);
  }
  if (pass.end) found["damage"] = pass.end(block);
  found["seconds"] = base::monotonic_seconds() - start;
  return found;
}

void leave_visited_block(const Pass& pass) {
  pass.fitted->next_block();
  if (pass.guard) pass.changes_weights ? pass.guard->next_block() : pass.guard->advance();
  for (auto* walk : pass.others) walk->advance();
}

void pass_over_block(const Pass& pass) {
  pass.fitted->advance();
  if (pass.guard) pass.guard->advance();
  for (auto* walk : pass.others) walk->advance();
}

BlockFound block_found(const base::Json& json) {
  return {json.at("layers").get<std::vector<base::Json>>(), json.at("damage")};
}

}  // namespace

PassResult run_pass(const Pass& pass, model::Weights& weights, const ChosenLayers& chosen,
                    const SparsifyOptions& options, FinishedBlocks& finished, record::Observer& observer) {
  PassResult result;
  std::int64_t layers_done = 0;
  bool kept_before = false;
  for (std::int64_t block = 0; block <= chosen.last_block(); ++block) {
    const auto unit = static_cast<std::size_t>(architecture::Layout::block_unit(block));
    const bool changes = pass.changes_weights && chosen.names_block(block);
    const auto changed_W = changes ? weights.units[unit] : at::Tensor();
    const auto before = finished.read(pass.name, block, changed_W);
    if (before) {
      result.seconds_before += before->at("seconds").get<double>();
      layers_done += std::ssize(before->at("layers"));
      result.blocks.push_back(block_found(*before));
    } else {
      if (kept_before)
        observer.message(record::Level::info,
                         base::join("sparsify: going on after block ", block - 1, ", ", pass.name));
      const auto found = visit_block(pass, block, chosen, options, layers_done, observer);
      result.blocks.push_back(block_found(found));
      finished.write(pass.name, block, found, changed_W);
    }
    kept_before = before.has_value();
    if (block == chosen.last_block()) break;
    before ? pass_over_block(pass) : leave_visited_block(pass);
  }
  return result;
}

}  // namespace retort::sparsify
