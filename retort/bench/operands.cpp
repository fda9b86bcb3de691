#include "retort/bench/operands.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "retort/base/error.h"
#include "retort/base/random.h"

namespace retort::bench {

at::Tensor irregular(std::int64_t count, const at::TensorOptions& options) {
  constexpr std::int64_t kPiece = std::int64_t{1} << 20;
  const auto piece =
      at::arange(std::min(count, kPiece), options.dtype(at::kFloat)).sin_().to(options.dtype());
  auto numbers = at::empty({count}, options);
  if (count > 0) repeat(piece, numbers);
  return numbers;
}

void repeat(const at::Tensor& piece, const at::Tensor& to) {
  const auto flat = to.view({-1});
  for (std::int64_t i = 0; i < flat.numel(); i += piece.numel()) {
    const auto size = std::min(piece.numel(), flat.numel() - i);
    flat.narrow(0, i, size).copy_(piece.narrow(0, 0, size));
  }
}

std::vector<std::int32_t> random_ids(std::int64_t count, std::int64_t vocab_size, std::uint64_t number) {
  constexpr std::uint64_t kSeed = 0;
  base::Random random(kSeed, base::stream_of(base::join("bench prompt ", number)));
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<std::int32_t>(random.next_below(static_cast<std::uint64_t>(vocab_size))));
  return ids;
}

}  // namespace retort::bench
