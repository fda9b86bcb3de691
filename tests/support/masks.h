#pragma once
// Masks of a sparse model that one process holds.

#include <ATen/core/Tensor.h>

#include <vector>

#include "retort/model/sparsity.h"
#include "retort/model/weights.h"

namespace retort::test {

/// Masks of whole units, as training of one rank has them.
inline std::vector<at::Tensor> masks_of(const model::Weights& weights) {
  std::vector<at::Tensor> masks;
  for (std::size_t unit = 0; unit < weights.units.size(); ++unit)
    masks.push_back(model::mask_of_part(weights.layout, weights.lineage, unit, 0, weights.units[unit]));
  return masks;
}

}  // namespace retort::test
