#pragma once
// How often each feature takes which magnitude: integer counts over fixed, log-spaced edges, as in
// HdrHistogram, so that parts add up to exactly the whole.
//
// An octave [2^e, 2^(e+1)) has 8 buckets of equal width, for e from -24 to 23.  The first bucket holds what
// is smaller, and counts as 0; the last holds what is larger.
//
// Shape legend: N tokens, C features, B buckets.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace retort::calibrate {

inline constexpr std::int64_t kBucketsPerOctave = 8;
inline constexpr std::int64_t kLowestOctave = -24;
inline constexpr std::int64_t kOctaves = 48;
inline constexpr std::int64_t kBuckets = kOctaves * kBucketsPerOctave + 2;

/// int64 [C, B] counts of |x| * scale_C in float32; x_NC is finite, scale_C >= 0.
at::Tensor magnitude_counts(const at::Tensor& x_NC, const at::Tensor& scale_C);

/// float64 [B], rising: the middle of each bucket, 0 for the first, the lower edge of the last.
at::Tensor bucket_values(at::Device device);

/// float64 [C]: the value of the bucket in which the `quantile` of each feature lies, in (0, 1]; at most 1/16
/// away from it, relative.  0 where nothing was counted.
at::Tensor magnitude_quantile(const at::Tensor& counts_CB, double quantile);

}  // namespace retort::calibrate
