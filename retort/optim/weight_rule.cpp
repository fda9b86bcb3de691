#include "retort/optim/weight_rule.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace retort::optim {

void WeightRule::make_copy(std::int64_t, const at::Tensor& p, const at::Tensor& copy) const {
  copy.copy_(p);
}

void KeepZeros::project_gradient(std::int64_t unit, const at::Tensor& g) const {
  const auto& mask = masks_[static_cast<std::size_t>(unit)];
  if (!mask.defined()) return;
  constexpr std::int64_t kPiece = 1 << 20;  // so that the memory plan need not know of what it allocates
  for (std::int64_t begin = 0; begin < g.numel(); begin += kPiece) {
    const auto count = std::min(kPiece, g.numel() - begin);
    g.narrow(0, begin, count).masked_fill_(mask.narrow(0, begin, count).eq(0), 0);
  }
}

}  // namespace retort::optim
