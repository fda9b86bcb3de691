#pragma once
// Attention of all segments in one call of the library's fused kernels, which take their bounds.  What it
// computes and takes is said in ops/attention.h.
//
// What no fused kernel knows goes to device/: soft caps, float64, heads whose width is no multiple of 8
// or above 256.

#include <cstdint>

namespace retort::kernels::cuda {

/// The library's kernels hold rows for gaps behind segments.  All rows are at most so many times the tokens:
/// with more gaps, segments are taken in several calls in bfloat16, and one by one in float32.
inline constexpr std::int64_t kMostPadding = 2;

/// Whether the library's kernels know heads of this width.
bool has_attention(std::int64_t head_dim);

}  // namespace retort::kernels::cuda
