#pragma once
// The tiles in which attention's gradient is computed, and what they take of a thread's memory.

#include <algorithm>
#include <cstdint>

#include "retort/ops/cpu/vector_kernels.h"

namespace retort::ops::cpu {

/// Scores and their gradients of a tile take 256 kB in float32: they stay in the second cache.  The number of
/// keys is a multiple of that of rows, so the first row of a tile sees its first key.
inline constexpr std::int64_t kTileRows = 128, kTileKeys = 256;

constexpr std::int64_t padded(std::int64_t count) {
  return (count + kProductColumns - 1) / kProductColumns * kProductColumns;
}

/// Elements that one thread holds for segments of at most `longest` tokens.
constexpr std::int64_t tile_elements(std::int64_t longest, std::int64_t head_dim) {
  const auto width = padded(head_dim);
  return 3 * longest * width + 2 * head_dim * padded(longest) + kTileRows * (3 * width + 2 * kTileKeys + 1);
}

}  // namespace retort::ops::cpu
