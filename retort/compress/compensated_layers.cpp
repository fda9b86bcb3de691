#include "retort/compress/compensated_layers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>

#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/calibrate/hessian.h"
#include "retort/model/dtype.h"
#include "retort/model/forward.h"
#include "retort/record/stopped.h"

namespace retort::compress {
namespace {

using architecture::Role;

// Inputs of o_proj and of down_proj.
std::array<std::int64_t, 2> columns_of(const architecture::Block& block) {
  return {block.attention ? block.attention->num_heads * block.attention->head_dim : 0, mlp_width(block)};
}

// Of all that the constructor keeps.
std::int64_t bytes_of_sums(const architecture::Config& config) {
  std::int64_t bytes = 0;
  for (const auto& block : config.blocks)
    for (const auto columns : columns_of(block))
      bytes += 2 * columns * columns * (columns <= calibrate::kDoubleColumns ? 8 : 4);
  return bytes;
}

// A candidate asks for one weight of every layer in turn: with room for fewer than two none would ever be
// found again.  A search asks for some tens of levels of each layer.
constexpr std::int64_t kFewestCandidates = 2, kMostCandidates = 32;

std::int64_t bytes_of_weights(const architecture::Config& config, std::int64_t item_bytes,
                              std::int64_t most) {
  std::int64_t columns = 0;
  for (const auto& block : config.blocks)
    for (const auto of_layer : columns_of(block)) columns += of_layer;
  const auto candidate = columns * config.hidden_size * item_bytes;
  return std::max(std::min(most, kMostCandidates * candidate), kFewestCandidates * candidate);
}

}  // namespace

CompensatedBytes compensated_bytes(const architecture::Config& config, std::int64_t item_bytes) {
  const auto all = bytes_of_sums(config);
  return {.sums = all > kSumsBytes ? all / static_cast<std::int64_t>(config.blocks.size()) : all,
          .weights = bytes_of_weights(config, item_bytes, kRecentWeightsBytes)};
}

CompensatedLayers::CompensatedLayers(const model::Weights& input, const FitSources& sources,
                                     const CompensationOptions& options, const Memory& memory,
                                     record::Observer& observer)
    : input_(input),
      dampening_fraction_(options.dampening_fraction),
      known_(bytes_of_weights(input.config, input.item_bytes(), memory.weights_bytes)) {
  const auto text = fit_text(sources, input.config, input.units.front().device(), options.batch_tokens);
  fitted_tokens_ = text.fitted_tokens;
  if (const auto bytes = bytes_of_sums(input.config); !memory.scratch.empty() && bytes > memory.sums_bytes) {
    observer.message(record::Level::info, base::join("prune: sums for compensation, ",
                                                     base::human_bytes(static_cast<std::uint64_t>(bytes)),
                                                     ", in ", memory.scratch.string()));
    sums_ = model::StoredTensors(memory.scratch);
  }
  calibrate::Walk walk(input, text.batches, memory.hidden_scratch);
  const auto blocks = std::ssize(input.config.blocks);
  while (walk.block() < blocks) {
    record::stop_if_asked(observer, "prune", "the candidates measured so far");
    collect(walk, text);
    observer.progress("prune: blocks summed for compensation", walk.block(), blocks);
  }
}

void CompensatedLayers::collect(calibrate::Walk& walk, const FitText& text) {
  struct Sums {
    calibrate::HessianSums fit, guard;
  } output, down;
  const auto block = walk.block();
  walk.advance([&](std::size_t batch, model::Tap tap, const at::Tensor& x_NC) {
    const auto add = [&](Sums& sums) {
      calibrate::accumulate_hessian(text.chooses(batch) ? sums.guard : sums.fit, x_NC, 1);
    };
    if (tap == model::Tap::output_input) add(output);
    if (tap == model::Tap::down_input) add(down);
  });
  keep_sums(block, Role::output, output.fit.products_CC, output.guard.products_CC);
  keep_sums(block, Role::down, down.fit.products_CC, down.guard.products_CC);
}

void CompensatedLayers::keep_sums(std::int64_t block, Role layer, const at::Tensor& fit_CC,
                                  const at::Tensor& guard_CC) {
  if (!fit_CC.defined()) return;  // the block lacks the layer
  const auto unit = static_cast<std::size_t>(architecture::Layout::block_unit(block));
  const auto& name = input_.layout.units[unit].find(layer)->name;
  const auto& sparse = input_.lineage.sparse_layers;
  if (std::find(sparse.begin(), sparse.end(), name) != sparse.end()) return;  // it would not stay sparse
  require_finite_inputs(fit_CC, name);
  const auto place = 2 * places_.size();
  sums_.set(place, fit_CC);
  sums_.set(place + 1, guard_CC);
  places_[{block, layer}] = place;
}

at::Tensor CompensatedLayers::fitted(std::int64_t block, Role layer,
                                     const std::vector<std::int64_t>& kept) const {
  const auto place = places_.find({block, layer});
  if (place == places_.end()) return {};
  const auto unit = static_cast<std::size_t>(architecture::Layout::block_unit(block));
  const auto weight_DC = input_.tensor(unit, *input_.layout.units[unit].find(layer));
  const auto kept_K = model::index_tensor(kept, weight_DC.device());
  const auto part = [&](const at::Tensor& sums_CC) {
    const auto cross_CK = sums_CC.index_select(1, kept_K);
    return LeastSquaresSums{.kept_KK = cross_CK.index_select(0, kept_K), .cross_IK = cross_CK};
  };
  const auto fit = part(sums_.get(place->second)), guard = part(sums_.get(place->second + 1));
  const auto wide_DC = weight_DC.to(fit.kept_KK.scalar_type());
  const auto kept_DK = wide_DC.index_select(1, kept_K);
  const auto solution_DK = least_squares(
      wide_DC, kept_DK, fit, dampening_fraction_.value_or(dampening_of_fit(kept_DK.size(1), fitted_tokens_)));
  if (!solution_DK.defined()) return {};
  const auto saved_DK = solution_DK.to(model::scalar_type(input_.file_dtype)).to(kept_DK.scalar_type());
  if (!(guard.gain(wide_DC, kept_DK, saved_DK) > 0)) return {};
  return at::zeros_like(weight_DC).index_copy_(1, kept_K, saved_DK.to(weight_DC.scalar_type()));
}

at::Tensor CompensatedLayers::weight_DC(std::int64_t block, Role layer,
                                        const std::vector<std::int64_t>& kept) {
  const Key key{block, layer, kept};
  if (const auto found = known_.find(key)) return *found;
  const auto weight_DC = fitted(block, layer, kept);
  known_.keep(key, weight_DC);
  return weight_DC;
}

}  // namespace retort::compress
