#include "retort/model/forward.h"

#include "retort/model/head.h"

namespace retort::model {

BlockWeights weights_of_block(const Weights& weights, std::int64_t block) {
  const auto unit = static_cast<std::size_t>(architecture::Layout::block_unit(block));
  return block_weights(weights.config.blocks[static_cast<std::size_t>(block)], weights.layout.units[unit],
                       weights.unit_on_device(unit));
}

at::Tensor embedded(const Weights& weights, const at::Tensor& ids_N) {
  const auto& unit = weights.units.front();
  return weights.on_device(embed(embedding_matrix(weights.layout, unit), ids_N.to(unit.device()),
                                 weights.config.embedding_factor));
}

at::Tensor forward_block(const Weights& weights, std::int64_t block, const at::Tensor& x_ND,
                         const TokenLayout& layout, const BlockHooks& hooks) {
  return block_forward(weights_of_block(weights, block), weights.config.rms_norm_eps, x_ND, layout, nullptr,
                       &hooks);
}

at::Tensor forward_blocks(const Weights& weights, at::Tensor x_ND, const TokenLayout& layout,
                          std::int64_t first) {
  for (auto block = first; block < std::ssize(weights.config.blocks); ++block)
    x_ND = forward_block(weights, block, x_ND, layout);
  return x_ND;
}

}  // namespace retort::model
