#include "retort/kernels/cuda/segments.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>

namespace retort::kernels::cuda {
namespace {

struct Known {
  std::vector<std::int64_t> bounds;
  Segments segments;
};

}  // namespace

Segments segments_of(const std::vector<std::int64_t>& bounds, at::Device device) {
  // Documents, which attention asks for, and sequences, which losses ask for.
  thread_local std::array<Known, 2> recent;
  for (const auto& [known, segments] : recent)
    if (known == bounds && segments.bounds_S.defined() && segments.bounds_S.device() == device)
      return segments;
  Segments made{
      at::tensor(std::vector<int>(bounds.begin(), bounds.end()), at::kInt).to(device, /*non_blocking=*/true),
      0};
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i)
    made.longest = std::max(made.longest, bounds[i + 1] - bounds[i]);
  std::swap(recent[0], recent[1]);
  recent[0] = {bounds, made};
  return made;
}

}  // namespace retort::kernels::cuda
