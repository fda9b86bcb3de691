#pragma once
// The mask of an n:m pattern that scores give.
//
// Shape legend: R rows, C columns.

#include <ATen/core/Tensor.h>

#include "retort/model/sparsity.h"

namespace retort::compress {

/// Bool [R, C], true for the pattern's `kept` highest scores of each group of a row; of equals the last stay.
/// Columns must be a multiple of the group.
at::Tensor highest_of_groups(const at::Tensor& score_RC, const model::Pattern& pattern);

}  // namespace retort::compress
