#include "retort/bench/matrix_product.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>

namespace retort::bench {

double matrix_product_flops(at::ScalarType dtype, at::Device device) {
  using Clock = std::chrono::steady_clock;
  constexpr std::int64_t kSize = 1024;
  const auto options = at::TensorOptions().dtype(dtype).device(device);
  const auto a = at::ones({kSize, kSize}, options), b = at::ones({kSize, kSize}, options);
  auto c = at::empty({kSize, kSize}, options);
  double best_seconds = 1e30;
  const auto begin = Clock::now();
  for (int i = 0; i < 50 && (i < 3 || Clock::now() - begin < std::chrono::milliseconds(200)); ++i) {
    const auto start = Clock::now();
    at::mm_out(c, a, b.t());
    // Reading one number waits for a device that works asynchronously.
    (void)c[0][0].item<double>();
    best_seconds = std::min(best_seconds, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return 2.0 * kSize * kSize * kSize / best_seconds;
}

}  // namespace retort::bench
