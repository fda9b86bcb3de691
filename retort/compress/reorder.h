#pragma once
// Changes of the order of inner features that change nothing of what a model computes but rounding: the
// channels of an MLP, and the features of a value head.  Rotary positions tie the features of queries and
// keys to their places.
//
// Shape legend: R rows, C columns of down_proj or o_proj.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "retort/architecture/layout.h"
#include "retort/model/sparsity.h"
#include "retort/model/weights.h"

namespace retort::compress {

/// The order of inputs of `layer`, a down_proj or o_proj, in which the pattern keeps more of `score_RC`; see
/// column_order().  The query heads of a KV group share the order of its value head.  Empty where the layer's
/// inputs have no free order or, with fewer features than a group in a head, no better one.
std::vector<std::int64_t> input_order(const architecture::Config& config, const architecture::Layout& layout,
                                      const architecture::Tensor& layer, const at::Tensor& score_RC,
                                      const model::Pattern& pattern);

/// Puts the columns of `layer` and the rows that make them in an order that input_order() returned.
void reorder_inputs(model::Weights& weights, const architecture::Tensor& layer,
                    const std::vector<std::int64_t>& order);

}  // namespace retort::compress
