#include "retort/compress/compensated_layers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/calibrate/hessian.h"
#include "retort/model/dtype.h"
#include "retort/model/forward.h"
#include "retort/record/stopped.h"
#include "retort/shard/tensor_buffer.h"

namespace retort::compress {
namespace {

using architecture::Role;

// Inputs of o_proj and of down_proj.
std::array<std::int64_t, 2> columns_of(const architecture::Block& block) {
  return {block.attention ? block.attention->num_heads * block.attention->head_dim : 0, mlp_width(block)};
}

std::int64_t bytes_of_sums(const architecture::Block& block) {
  std::int64_t bytes = 0;
  for (const auto columns : columns_of(block))
    bytes += 2 * columns * columns * (columns <= calibrate::kDoubleColumns ? 8 : 4);
  return bytes;
}

// Of all that the constructor keeps.
std::int64_t bytes_of_sums(const architecture::Config& config) {
  std::int64_t bytes = 0;
  for (const auto& block : config.blocks) bytes += bytes_of_sums(block);
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

// The batches that this rank takes, of both kinds.
FitText part_of_rank(FitText text, const comm::Group& group) {
  FitText part{.batches = {}, .fitted = 0, .fitted_tokens = text.fitted_tokens};
  for (std::size_t batch = 0; batch < text.batches.size(); ++batch) {
    if (static_cast<int>(batch % static_cast<std::size_t>(group.size())) != group.rank()) continue;
    part.batches.push_back(std::move(text.batches[batch]));
    part.fitted += text.chooses(batch) ? 0 : 1;
  }
  return part;
}

// Of one layer, on the text that is fitted to and on that which judges.
struct LayerSums {
  calibrate::HessianSums fit, guard;
};

// Zeros, since a rank may have no text of a kind; undefined where the block lacks the layer.
LayerSums empty_sums(std::int64_t columns, const model::Weights& weights) {
  LayerSums sums;
  if (columns == 0) return sums;
  const auto type = calibrate::sum_type(columns, weights.units.front().scalar_type());
  for (auto* of_text : {&sums.fit, &sums.guard})
    of_text->products_CC = at::zeros({columns, columns}, weights.options().dtype(type));
  return sums;
}

void add_over_ranks(LayerSums& sums, comm::Group& group) {
  for (auto* of_text : {&sums.fit, &sums.guard})
    if (of_text->products_CC.defined()) group.all_reduce(shard::buffer_of(of_text->products_CC)).wait();
}

}  // namespace

CompensatedBytes compensated_bytes(const architecture::Config& config, std::int64_t item_bytes) {
  std::int64_t sums = bytes_of_sums(config);
  if (sums > kSumsBytes) {  // the rest is on disk
    sums = 0;
    for (const auto& block : config.blocks) sums = std::max(sums, bytes_of_sums(block));
  }
  return {.sums = sums, .weights = bytes_of_weights(config, item_bytes, kRecentWeightsBytes)};
}

CompensatedLayers::CompensatedLayers(const model::Weights& input, const FitSources& sources,
                                     const CompensationOptions& options, const Memory& memory,
                                     record::Observer& observer, comm::Group* group)
    : input_(input),
      dampening_fraction_(options.dampening_fraction),
      known_(bytes_of_weights(input.config, input.item_bytes(), memory.weights_bytes)) {
  auto text = fit_text(sources, input.config, input.options().device(), options.batch_tokens);
  fitted_tokens_ = text.fitted_tokens;
  if (group) text = part_of_rank(std::move(text), *group);
  if (const auto bytes = bytes_of_sums(input.config); !memory.scratch.empty() && bytes > memory.sums_bytes) {
    observer.message(record::Level::info, base::join("prune: sums for compensation, ",
                                                     base::human_bytes(static_cast<std::uint64_t>(bytes)),
                                                     ", in ", memory.scratch.string()));
    sums_ = model::StoredTensors(memory.scratch);
  }
  std::optional<calibrate::Walk> walk;
  comm::agree(group, [&] { walk.emplace(input, text.batches, memory.hidden_scratch); });
  const auto blocks = std::ssize(input.config.blocks);
  while (walk->block() < blocks) {
    collect(*walk, text, group, observer);
    observer.progress("prune: blocks summed for compensation", walk->block(), blocks);
  }
}

void CompensatedLayers::collect(calibrate::Walk& walk, const FitText& text, comm::Group* group,
                                record::Observer& observer) {
  const auto block = walk.block();
  const auto& shape = input_.config.blocks[static_cast<std::size_t>(block)];
  std::array<LayerSums, 2> layers;  // o_proj, down_proj
  for (std::size_t i = 0; i < layers.size(); ++i) layers[i] = empty_sums(columns_of(shape)[i], input_);
  comm::agree(group, [&] {
    if (!group || group->rank() == 0)
      record::stop_if_asked(observer, "prune", "the candidates measured so far");
    walk.advance([&](std::size_t batch, model::Tap tap, const at::Tensor& x_NC) {
      const auto add = [&](LayerSums& sums) {
        calibrate::accumulate_hessian(text.chooses(batch) ? sums.guard : sums.fit, x_NC, 1);
      };
      if (tap == model::Tap::output_input) add(layers[0]);
      if (tap == model::Tap::down_input) add(layers[1]);
    });
  });
  if (group)
    for (auto& sums : layers) add_over_ranks(sums, *group);
  comm::agree(group, [&] {
    keep_sums(block, Role::output, layers[0].fit.products_CC, layers[0].guard.products_CC);
    keep_sums(block, Role::down, layers[1].fit.products_CC, layers[1].guard.products_CC);
  });
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
  const auto weight_DC = input_.on_device(input_.tensor(unit, *input_.layout.units[unit].find(layer)));
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
