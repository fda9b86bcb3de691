#pragma once
// The units of a model in the order in which a step passes them.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "retort/base/index.h"
#include "retort/model/block.h"
#include "retort/shard/parameters.h"

namespace retort::shard {

/// What a forward pass takes after this block.
inline std::int64_t unit_after(const Parameters& parameters, std::int64_t block) {
  return block + 1 < parameters.layout().num_blocks() ? architecture::Layout::block_unit(block + 1)
                                                      : parameters.layout().head_unit();
}

/// The weights of a block, or their gradients, in its unit's flat values.
inline model::BlockWeights block_of(const Parameters& parameters, std::int64_t block,
                                    const at::Tensor& flat) {
  const auto unit = base::to_size(architecture::Layout::block_unit(block));
  return model::block_weights(parameters.config().blocks[base::to_size(block)],
                              parameters.layout().units[unit], flat);
}

}  // namespace retort::shard
