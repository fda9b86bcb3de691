#pragma once
// An order of a layer's inputs in which an n:m pattern loses less: columns that most rows want share groups
// with columns that few rows want.
//
// Shape legend: R rows, C columns.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "retort/model/sparsity.h"

namespace retort::compress {

/// The part of the sum of `score_RC` that the pattern's highest scores of each group have, 0 to 1.
double kept_share(const at::Tensor& score_RC, const model::Pattern& pattern);

/// Returns the column that comes to each place; the share kept in that order is at least that of the present
/// one. `score_RC` must be finite and not negative; columns a multiple of the group.  Deals columns out by
/// their sums, then lets every group give up one column and assigns those anew at the least loss, again and
/// again: each of these steps is exact, their sequence is a local search.  Time: C^2 R / group, memory (C /
/// group)^2; above 512 groups parts of them are assigned in turn.  Source: the idea of assigning channels is
/// that of Pool & Yu, "Channel permutations for N:M sparsity" (2021), and Zhang et al., "Plug-and-play"
/// (2024).
std::vector<std::int64_t> column_order(const at::Tensor& score_RC, const model::Pattern& pattern);

}  // namespace retort::compress
