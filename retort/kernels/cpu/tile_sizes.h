#pragma once
// The tiles in which attention and its gradient are computed, and what they take of a thread's memory.

#include <algorithm>
#include <cstdint>

#include "retort/kernels/cpu/vector_kernels.h"

namespace retort::kernels::cpu {

/// Scores and their gradients of a tile take 256 kB in float32: they stay in the second cache.  The number of
/// keys is a multiple of that of rows, so the first row of a tile sees its first key.
inline constexpr std::int64_t kTileRows = 128, kTileKeys = 256;

constexpr std::int64_t padded(std::int64_t count) {
  return (count + kProductColumns - 1) / kProductColumns * kProductColumns;
}

constexpr std::int64_t tiles_of(std::int64_t length, std::int64_t tile) {
  return (length + tile - 1) / tile;
}

/// Queries of a tile of the forward pass, which has all keys that they see.
inline constexpr std::int64_t kForwardRows = 64;

/// Elements that one thread holds for segments of at most `longest` tokens, forward and backward.
constexpr std::int64_t forward_elements(std::int64_t longest, std::int64_t head_dim) {
  const auto width = padded(head_dim);
  return longest * width + head_dim * padded(longest) + kForwardRows * (2 * width + padded(longest) + 1);
}
constexpr std::int64_t backward_elements(std::int64_t longest, std::int64_t head_dim) {
  const auto width = padded(head_dim);
  return 3 * longest * width + 2 * head_dim * padded(longest) + kTileRows * (3 * width + 2 * kTileKeys + 1);
}

/// Elements between rows of keys as columns on a matrix unit: few values, because each is a kernel of its
/// own.
constexpr std::int64_t unit_stride(std::int64_t longest) {
  const std::int64_t step = longest <= 2048 ? 256 : 2048;
  return (longest + step - 1) / step * step;
}

/// Float32 elements that one thread holds there, forward and backward; two of bfloat16 count as one.
constexpr std::int64_t unit_forward_elements(std::int64_t longest, std::int64_t head_dim) {
  const auto stride = unit_stride(longest);
  return stride * head_dim + kForwardRows * (head_dim / 2 + stride / 2 + stride + head_dim + 1);
}
constexpr std::int64_t unit_backward_elements(std::int64_t longest, std::int64_t head_dim) {
  const auto stride = unit_stride(longest);
  return 4 * stride * head_dim + 3 * kTileRows * head_dim + kTileKeys * kTileRows * 2 +
         kTileKeys * kTileRows * 3 / 2 + 2 * kTileRows;
}

}  // namespace retort::kernels::cpu
