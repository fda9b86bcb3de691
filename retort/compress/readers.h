#pragma once
// The layer that reads what a half of a block makes, o_proj or down_proj, and what an evaluator changes of
// it.

#include <cstdint>
#include <vector>

#include "retort/architecture/kept.h"
#include "retort/architecture/layout.h"
#include "retort/model/block.h"

namespace retort::compress {

architecture::Role reader_of(architecture::Half half);
/// Its weight, and the mask of its inputs.
at::Tensor& reader_weight(model::BlockWeights& weights, architecture::Half half);
at::Tensor& input_mask(model::BlockHooks& hooks, architecture::Half half);
/// Makes a block compute without the half.
void skip(model::BlockWeights& weights, architecture::Half half);

/// How many inputs it has in a block of the input model; 0 without the half.
std::int64_t inputs_of(const architecture::Config& input, architecture::Half half, std::int64_t block);
/// Those that a block of the input model keeps, rising: what all parts of the half leave.
std::vector<std::int64_t> kept_inputs(const architecture::Config& input, const architecture::Kept& kept,
                                      architecture::Half half, std::int64_t block);

}  // namespace retort::compress
