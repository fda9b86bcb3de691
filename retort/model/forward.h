#pragma once
// Forward through the blocks of a model whose weights are all in memory, where they may be offloaded.
//
// Shape legend: N tokens, D hidden.

#include "retort/model/block.h"
#include "retort/model/tokens.h"
#include "retort/model/weights.h"

namespace retort::model {

/// Views of one block of a model, on the device that computes with it.
BlockWeights weights_of_block(const Weights& weights, std::int64_t block);

/// The input of block 0, [N, D].
at::Tensor embedded(const Weights& weights, const at::Tensor& ids_N);

/// The output of one block, [N, D].
at::Tensor forward_block(const Weights& weights, std::int64_t block, const at::Tensor& x_ND,
                         const TokenLayout& layout, const BlockHooks& hooks = {});

/// The output of the last block from the input of block `first`, [N, D].
at::Tensor forward_blocks(const Weights& weights, at::Tensor x_ND, const TokenLayout& layout,
                          std::int64_t first = 0);

}  // namespace retort::model
