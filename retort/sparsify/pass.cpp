#include "retort/sparsify/pass.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/machine.h"
#include "retort/calibrate/sums_over_ranks.h"
#include "retort/record/stopped.h"

namespace retort::sparsify {
namespace {

using model::Half;
using model::Tap;

Half half_of(Tap tap) {
  return tap == Tap::qkv_input || tap == Tap::output_input ? Half::attention : Half::mlp;
}

// Adds what a batch of a walk gives a layer.
using AddInputs = void (*)(const calibrate::Walk& walk, std::size_t batch, Tap tap,
                           calibrate::HessianSums& sums);

// Of a walk that stands before the tap's half.
void add_before_half(const calibrate::Walk& walk, std::size_t batch, Tap tap, calibrate::HessianSums& sums) {
  const bool first = tap == Tap::qkv_input || tap == Tap::gate_up_input;
  calibrate::accumulate_hessian(
      sums, first ? walk.half_input_ND(batch, half_of(tap)) : walk.half_inner_NC(batch, half_of(tap)),
      walk.batches()[batch].sequences());
}

// Of a walk that stands before the block.
void add_before_block(const calibrate::Walk& walk, std::size_t batch, Tap wanted,
                      calibrate::HessianSums& sums) {
  walk.look(batch, [&](std::size_t, Tap tap, const at::Tensor& x_NC) {
    if (tap == wanted) calibrate::accumulate_hessian(sums, x_NC, walk.batches()[batch].sequences());
  });
}

// Of the text of all ranks; the same bits on any number of them where the inputs are.
at::Tensor hessian(const SharedModel& model, const LayerGroup& group, const calibrate::Walk& walk,
                   AddInputs add_inputs) {
  const auto& layer = *group.layers.front();
  const auto inputs = model.weights().options();
  const auto batches = walk.batches().size(), first = std::min<std::size_t>(batches, 1);
  calibrate::HessianSums sums;
  const auto add = [&](std::size_t begin, std::size_t end) {
    for (auto batch = begin; batch < end; ++batch) add_inputs(walk, batch, group.tap, sums);
  };
  model.group().agree([&] { add(0, first); });
  calibrate::agree_on_units(model.group(), sums, layer.cols(), inputs);
  model.group().agree([&] { add(first, batches); });
  calibrate::sum_over_ranks(model.group(), sums, layer.cols(), inputs);
  at::Tensor hessian_CC;
  model.group().agree([&] { hessian_CC = calibrate::hessian_of(sums, layer.name); });
  return hessian_CC;
}

at::Tensor guard_hessian(const PassText& text, const SharedModel& model, const LayerGroup& group) {
  if (!text.guard) return {};
  return hessian(model, group, *text.guard, text.weights_change ? add_before_half : add_before_block);
}

LayerInputs inputs_of(const PassText& text, const SharedModel& model, const LayerGroup& group,
                      const SparsifyOptions& options, record::Observer& observer) {
  const auto& first = group.layers.front()->name;
  LayerInputs inputs{
      hessian(model, group, *text.fitted, add_before_half), guard_hessian(text, model, group), {}};
  if (!compress::updates_weights(options.method)) return inputs;
  model.group().agree(
      [&] { inputs.factor = calibrate::factorise(inputs.hessian_CC, options.dampening_fraction, first); });
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
void finish_half(const PassText& text, Half half) {
  finish_half(*text.fitted, half);
  if (text.guard && text.weights_change) finish_half(*text.guard, half);
}

// Text goes through a block by halves, each once its layers are visited.
template <typename Layer>
FoundBlock<Layer> visit_block(const Pass<Layer>& pass, SharedModel& model, std::int64_t block,
                              const ChosenLayers& chosen, const SparsifyOptions& options,
                              std::int64_t& layers_done, record::Observer& observer) {
  const double start = base::monotonic_seconds();
  FoundBlock<Layer> found;
  const auto groups = chosen.groups(block);
  for (const auto half : {Half::attention, Half::mlp}) {
    for (const auto& group : groups) {
      if (half_of(group.tap) != half) continue;
      model.group().agree([&] { record::stop_if_asked(observer, "sparsify", block); });
      const auto inputs = inputs_of(pass.text, model, group, options, observer);
      for (const auto* layer : group.layers) {
        found.layers.push_back(pass.visit(*layer, inputs));
        observer.progress(pass.progress, ++layers_done, chosen.count());
      }
    }
    model.group().agree([&] { finish_half(pass.text, half); });
  }
  if (pass.end) found.damage = pass.end(block);
  found.seconds = base::monotonic_seconds() - start;
  return found;
}

// What an earlier run found of a block, whose weights are then in the model.
template <typename Layer>
std::optional<FoundBlock<Layer>> kept_block(const FinishedBlocks& finished, const char* pass,
                                            SharedModel& model, std::int64_t block, bool changes) {
  const auto unit = static_cast<std::size_t>(architecture::Layout::block_unit(block));
  auto kept = finished.read<Layer>(pass, block, changes ? model.weights().units[unit] : at::Tensor());
  if (!kept) return {};
  if (changes) model.change([&](model::Weights& weights) { weights.units[unit].copy_(kept->weights_W); });
  return std::move(kept->found);
}

// Walks that went through a visited block by halves stand at its end; all others still stand before it.
void leave_block(const PassText& text, bool visited) {
  const auto leave = [](calibrate::Walk& walk, bool by_halves) {
    by_halves ? walk.next_block() : walk.advance();
  };
  leave(*text.fitted, visited);
  if (text.guard) leave(*text.guard, visited && text.weights_change);
  for (auto* walk : text.others) walk->advance();
}

}  // namespace

template <typename Layer>
PassResult<Layer> run_pass(const Pass<Layer>& pass, SharedModel& model, const ChosenLayers& chosen,
                           const SparsifyOptions& options, FinishedBlocks& finished,
                           record::Observer& observer) {
  PassResult<Layer> result;
  std::int64_t layers_done = 0;
  bool kept_before = false;
  for (std::int64_t block = 0; block <= chosen.last_block(); ++block) {
    const bool changes = pass.text.weights_change && chosen.names_block(block);
    auto found = kept_block<Layer>(finished, pass.name, model, block, changes);
    const bool kept = found.has_value();
    if (kept) {
      result.seconds_before += found->seconds;
      layers_done += std::ssize(found->layers);
    } else {
      if (kept_before)
        observer.message(record::Level::info,
                         base::join("sparsify: going on after block ", block - 1, ", ", pass.name));
      found = visit_block(pass, model, block, chosen, options, layers_done, observer);
      const auto unit = static_cast<std::size_t>(architecture::Layout::block_unit(block));
      finished.write(pass.name, block, *found, changes ? model.weights().units[unit] : at::Tensor());
    }
    result.blocks.push_back(std::move(*found));
    kept_before = kept;
    if (block < chosen.last_block()) model.group().agree([&] { leave_block(pass.text, !kept); });
  }
  return result;
}

template PassResult<LayerDamage> run_pass(const Pass<LayerDamage>&, SharedModel&, const ChosenLayers&,
                                          const SparsifyOptions&, FinishedBlocks&, record::Observer&);
template PassResult<LayerResult> run_pass(const Pass<LayerResult>&, SharedModel&, const ChosenLayers&,
                                          const SparsifyOptions&, FinishedBlocks&, record::Observer&);

}  // namespace retort::sparsify
