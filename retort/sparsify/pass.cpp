#include "retort/sparsify/pass.h"

#include <utility>

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

at::Tensor guard_hessian(const PassText& text, Tap tap, const std::string& layer) {
  if (!text.guard) return {};
  return text.weights_change ? hessian_before_half(*text.guard, tap, layer)
                             : hessian_before_block(*text.guard, tap, layer);
}

LayerInputs inputs_of(const PassText& text, const LayerGroup& group, const SparsifyOptions& options,
                      record::Observer& observer) {
  const auto& first = group.layers.front()->name;
  LayerInputs inputs{
      hessian_before_half(*text.fitted, group.tap, first), guard_hessian(text, group.tap, first), {}};
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
void finish_half(const PassText& text, Half half) {
  finish_half(*text.fitted, half);
  if (text.guard && text.weights_change) finish_half(*text.guard, half);
}

// Text goes through a block by halves, each once its layers are visited.
template <typename Layer>
FoundBlock<Layer> visit_block(const Pass<Layer>& pass, std::int64_t block, const ChosenLayers& chosen,
                              const SparsifyOptions& options, std::int64_t& layers_done,
                              record::Observer& observer) {
  const double start = base::monotonic_seconds();
  FoundBlock<Layer> found;
  const auto groups = chosen.groups(block);
  for (const auto half : {Half::attention, Half::mlp}) {
    for (const auto& group : groups) {
      if (half_of(group.tap) != half) continue;
      record::stop_if_asked(observer, "sparsify", block);
      const auto inputs = inputs_of(pass.text, group, options, observer);
      for (const auto* layer : group.layers) {
        found.layers.push_back(pass.visit(*layer, inputs));
        observer.progress(pass.progress, ++layers_done, chosen.count());
      }
    }
    finish_half(pass.text, half);
  }
  if (pass.end) found.damage = pass.end(block);
  found.seconds = base::monotonic_seconds() - start;
  return found;
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
PassResult<Layer> run_pass(const Pass<Layer>& pass, model::Weights& weights, const ChosenLayers& chosen,
                           const SparsifyOptions& options, FinishedBlocks& finished,
                           record::Observer& observer) {
  PassResult<Layer> result;
  std::int64_t layers_done = 0;
  bool kept_before = false;
  for (std::int64_t block = 0; block <= chosen.last_block(); ++block) {
    const auto unit = static_cast<std::size_t>(architecture::Layout::block_unit(block));
    const bool changes = pass.text.weights_change && chosen.names_block(block);
    const auto changed_W = changes ? weights.units[unit] : at::Tensor();
    auto found = finished.read<Layer>(pass.name, block, changed_W);
    const bool kept = found.has_value();
    if (kept) {
      result.seconds_before += found->seconds;
      layers_done += std::ssize(found->layers);
    } else {
      if (kept_before)
        observer.message(record::Level::info,
                         base::join("sparsify: going on after block ", block - 1, ", ", pass.name));
      found = visit_block(pass, block, chosen, options, layers_done, observer);
      finished.write(pass.name, block, *found, changed_W);
    }
    result.blocks.push_back(std::move(*found));
    kept_before = kept;
    if (block < chosen.last_block()) leave_block(pass.text, !kept);
  }
  return result;
}

template PassResult<LayerDamage> run_pass(const Pass<LayerDamage>&, model::Weights&, const ChosenLayers&,
                                          const SparsifyOptions&, FinishedBlocks&, record::Observer&);
template PassResult<LayerResult> run_pass(const Pass<LayerResult>&, model::Weights&, const ChosenLayers&,
                                          const SparsifyOptions&, FinishedBlocks&, record::Observer&);

}  // namespace retort::sparsify
