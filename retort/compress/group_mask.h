#pragma once
// The groups of an n:m pattern in a row of weights, and the mask that scores give.
//
// Shape legend: R rows, C columns.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "retort/model/sparsity.h"

namespace retort::compress {

/// Throws UsageError naming `who` for columns that are no multiple of the group.
void require_groups(std::int64_t columns, const model::Pattern& pattern, const std::string& who);

/// Bool [R, C], true for the pattern's `kept` highest scores of each group of a row; of equals the last stay.
/// Columns must be a multiple of the group.
at::Tensor highest_of_groups(const at::Tensor& score_RC, const model::Pattern& pattern);

}  // namespace retort::compress
