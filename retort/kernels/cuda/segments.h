#pragma once
// Bounds of segments where kernels read them.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace retort::kernels::cuda {

struct Segments {
  at::Tensor bounds_S;       ///< int32, on the device: the first token of each segment, and the end
  std::int64_t longest = 0;  ///< tokens

  std::int64_t count() const { return bounds_S.numel() - 1; }
};

/// All layers of a batch ask for the same, so the last two are kept.  Nothing is waited for.
Segments segments_of(const std::vector<std::int64_t>& bounds, at::Device device);

}  // namespace retort::kernels::cuda
