#include "retort/bench/operands.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace retort::bench {

at::Tensor irregular(std::int64_t count, const at::TensorOptions& options) {
  constexpr std::int64_t kPiece = std::int64_t{1} << 20;
  const auto piece =
      at::arange(std::min(count, kPiece), options.dtype(at::kFloat)).sin_().to(options.dtype());
  const auto numbers = at::empty({count}, options);
  for (std::int64_t i = 0; i < count; i += kPiece) {
    const auto size = std::min(kPiece, count - i);
    numbers.narrow(0, i, size).copy_(piece.narrow(0, 0, size));
  }
  return numbers;
}

}  // namespace retort::bench
