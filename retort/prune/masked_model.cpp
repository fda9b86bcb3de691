#include "retort/prune/masked_model.h"

#include <ATen/ATen.h>

#include "retort/model/forward.h"
#include "retort/model/tokens.h"

namespace retort::prune {
namespace {

// 1 for what is kept; undefined when all is.
at::Tensor mask_of(const std::vector<std::int64_t>& kept, std::int64_t width,
                   const at::TensorOptions& options) {
  if (std::ssize(kept) == width) return {};
  auto mask_I = at::zeros({width}, options);
  mask_I.index_fill_(0, model::index_tensor(kept, options.device()), 1);
  return mask_I;
}

MaskedModel::Block block_of(const model::Weights& input, const architecture::Kept& candidate,
                            std::int64_t number, compress::CompensatedLayers* compensated) {
  MaskedModel::Block block;
  block.keeps = candidate.find(number) != nullptr;
  if (!block.keeps) return block;
  const auto options = input.options();
  for (const auto half : architecture::kHalves) {
    const auto inputs = compress::kept_inputs(input.config, candidate, half, number);
    auto& mask = compress::input_mask(block.hooks, half);
    mask = mask_of(inputs, compress::inputs_of(input.config, half, number), options);
    if (inputs.empty())
      block.changes.push_back({half, {}});
    else if (compensated && mask.defined())
      if (auto fitted = compensated->weight_DC(number, compress::reader_of(half), inputs); fitted.defined())
        block.changes.push_back({half, std::move(fitted)});
  }
  return block;
}

}  // namespace

MaskedModel::MaskedModel(const model::Weights& whole, const architecture::Kept& candidate,
                         compress::CompensatedLayers* compensated)
    : input(whole) {
  mask_D = mask_of(candidate.hidden, input.config.hidden_size, input.options());
  const auto keys = architecture::hashes_before(candidate, std::ssize(input.config.blocks),
                                                compensated ? "compensated" : "plain");
  for (std::int64_t block = 0; block < std::ssize(input.config.blocks); ++block) {
    blocks.push_back(block_of(input, candidate, block, compensated));
    blocks.back().prefix = keys[static_cast<std::size_t>(block)];
    blocks.back().hooks.hidden_mask_D = mask_D;
  }
}

model::BlockWeights MaskedModel::weights_of_block(std::int64_t block) const {
  auto weights = model::weights_of_block(input, block);
  for (const auto& change : blocks[static_cast<std::size_t>(block)].changes) {
    if (change.fitted.defined())
      compress::reader_weight(weights, change.half) = change.fitted;
    else
      compress::skip(weights, change.half);
  }
  return weights;
}

}  // namespace retort::prune
