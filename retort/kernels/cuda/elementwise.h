#pragma once
// How far the kernels of norms reach.

#include <cstdint>

namespace retort::kernels::cuda {

/// Blocks at most that add up the gradient of a norm's weight, each of some rows.
inline constexpr std::int64_t kNormBlocks = 1024;

/// Whether the backward of a norm of rows of so many elements, of `item_bytes` each, has a kernel.
bool has_norm_backward(std::int64_t dim, std::int64_t item_bytes);

}  // namespace retort::kernels::cuda
