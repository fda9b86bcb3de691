#include "retort/kernels/cuda/kernels.h"

#include <algorithm>

namespace retort::kernels::cuda {

Grid shared_grid(std::int64_t items) {
  constexpr std::int64_t kMostBlocks = 4096;
  const Grid grid;
  return {.blocks = std::clamp<std::int64_t>((items + grid.threads - 1) / grid.threads, 1, kMostBlocks),
          .threads = grid.threads};
}

// An undefined tensor has no rows.
bool begins_rows_aligned(const at::Tensor& x) {
  constexpr std::int64_t kBytes = 16;
  if (!x.defined()) return true;
  // One row may have any stride.
  const auto row = x.dim() < 2 ? x.numel() : x.size(0) == 1 ? x.size(1) : x.stride(0);
  const auto row_bytes = row * static_cast<std::int64_t>(x.element_size());
  return row_bytes % kBytes == 0 && reinterpret_cast<std::uintptr_t>(x.const_data_ptr()) % kBytes == 0;
}

}  // namespace retort::kernels::cuda
