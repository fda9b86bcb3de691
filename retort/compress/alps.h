#pragma once
// ALPS: chooses a mask for all weights of a layer at once, by alternating directions between the least output
// error and the pattern, where the sweep of sparse_gpt.h fixes one group after the other.
// Source: Meng et al., "ALPS: improved optimization for highly sparse one-shot pruning for LLMs" (2024).
//
// Shape legend: R rows, C columns.

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>

#include "retort/calibrate/hessian.h"
#include "retort/compress/sparse_gpt.h"
#include "retort/model/sparsity.h"

namespace retort::compress {

/// Does a part of the work where others hold the layer's other rows and do the same part.  Whether the part
/// returned true for all rows; where it throws for some, it throws for all.
using OnAllRows = std::function<bool(const std::function<bool()>& part)>;

/// min ||(W - What) X||^2 + lambda ||W - What||^2 over weights of the pattern, from H in units in which its
/// diagonal is 1; then least squares for the mask.  One eigendecomposition of H and some twenty products of R
/// x C with C x C; these in float32, the last step in the weight's type.  `loss` is that without the damping.
/// Throws UsageError: columns that are no multiple of the group; ValidationError naming `who`: weights that
/// are not finite.  `weight_RC` may be some of a layer's rows: all stop at the same iteration.
SparseResult alps(
    const at::Tensor& weight_RC, const at::Tensor& hessian_CC, const calibrate::HessianFactor& factor,
    const model::Pattern& pattern, const std::string& who,
    const OnAllRows& on_all_rows = [](const std::function<bool()>& part) { return part(); });

}  // namespace retort::compress
