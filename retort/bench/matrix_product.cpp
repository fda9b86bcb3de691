#include "retort/bench/matrix_product.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>

#include "retort/bench/operands.h"
#include "retort/ops/device_memory.h"
#include "retort/ops/matrix_product.h"

namespace retort::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Of one reading of the clock.
constexpr double kTimedSeconds = 1e-3;

// A product and its operands in one type.
class Product {
 public:
  Product(const ProductShape& shape, at::ScalarType dtype, at::Device device)
      : a_(irregular(shape.rows * shape.inner, at::TensorOptions().dtype(dtype).device(device))
               .view({shape.rows, shape.inner})),
        b_(irregular(shape.columns * shape.inner, a_.options()).view({shape.columns, shape.inner})),
        flops_(shape.flops()) {}

  // So many products as take long enough to be timed: to start one on a device, and to hear of its end,
  // takes longer than a small one does.
  void run() {
    const double seconds = seconds_of(repeats_);
    seconds_ += seconds;
    products_ += repeats_;
    best_seconds_ = std::min(best_seconds_, seconds / repeats_);
    if (seconds < kTimedSeconds) repeats_ *= 2;
  }
  double seconds() const { return seconds_; }
  double best_seconds() const { return best_seconds_; }
  double best_flops() const { return flops_ / best_seconds_; }
  // The first products make kernels and touch pages, a small part of all.
  double mean_flops() const { return flops_ * static_cast<double>(products_) / seconds_; }

 private:
  double seconds_of(int products) {
    const auto start = Clock::now();
    for (int i = 0; i < products; ++i) {
      c_ = at::Tensor();  // before there is another
      c_ = ops::matrix_product(a_, b_.t());
    }
    // Reading one number waits for a device that works asynchronously.
    (void)c_[0][0].item<double>();
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  at::Tensor a_, b_, c_;
  double flops_, seconds_ = 0, best_seconds_ = 1e30;
  int repeats_ = 1;
  std::int64_t products_ = 0;
};

// A product, and what comes before each of its runs.
struct Turn {
  Product& product;
  void (*prepare)() = [] {};
};

// In turn, so that what else the machine does meets both.  The first products of a process make kernels and
// touch pages, so time that passed does not say that there were enough.
void run_in_turn(const Turn& one, const Turn& other) {
  constexpr double kSeconds = 0.05;
  constexpr int kLeast = 4;
  const auto is_open = [](const Turn& turn) { return turn.product.seconds() < kSeconds; };
  for (int i = 0; i < kLeast || is_open(one) || is_open(other); ++i)
    for (const auto* turn : {&one, &other}) {
      if (i >= kLeast && !is_open(*turn)) continue;
      turn->prepare();
      turn->product.run();
    }
}

// Two thousand million multiplications, and matrices of 64 MB, are enough to see a rate.
ProductShape shortened(ProductShape shape) {
  constexpr std::int64_t kSide = 4096, kMultiplications = std::int64_t{1} << 31;
  shape.inner = std::clamp<std::int64_t>(shape.inner, 1, kSide);
  shape.columns = std::clamp<std::int64_t>(shape.columns, 1, kSide);
  const auto most = std::max<std::int64_t>(64, kMultiplications / (shape.inner * shape.columns));
  shape.rows = std::clamp<std::int64_t>(shape.rows, 1, most);
  return shape;
}

MatrixRates rates_within(at::ScalarType dtype, at::Device device, double seconds) {
  constexpr std::int64_t kLargestSide = 8192;
  // Half of what an accelerator has left, for the next three matrices.
  const auto fits = [&](std::int64_t side) {
    const auto item_bytes = static_cast<std::int64_t>(at::elementSize(dtype));
    return device.is_cpu() || 3 * side * side * item_bytes <= ops::free_bytes(device) / 2;
  };
  for (std::int64_t side = 1024;; side *= 2) {
    Product product({side, side, side}, dtype, device);
    constexpr int kLeast = 3, kMost = 1000;
    for (int i = 0; i < kMost && (i < kLeast || product.seconds() < seconds); ++i) product.run();
    // A product that is over at once does not occupy the device.
    if (side == kLargestSide || product.best_seconds() >= kTimedSeconds || !fits(2 * side))
      return {product.best_flops(), product.mean_flops()};
  }
}

}  // namespace

double matrix_product_flops(at::ScalarType dtype, at::Device device) {
  return rates_within(dtype, device, 0.1).best;
}

MatrixRates matrix_rates(at::ScalarType dtype, at::Device device) {
  return rates_within(dtype, device, 0.5);
}

double ProductShape::flops() const {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(inner) * static_cast<double>(columns);
}

// The rest of a step gains less than the product, and pays for the conversions; what is left of a narrow win
// is not worth the digits.
at::ScalarType TypeRates::faster() const {
  constexpr double kClearly = 1.1;
  return bf16 >= kClearly * fp32 ? at::kBFloat16 : at::kFloat;
}

TypeRates measure_types(ProductShape shape, at::Device device) {
  shape = shortened(shape);
  Product fp32(shape, at::kFloat, device), bf16(shape, at::kBFloat16, device);
  run_in_turn({fp32}, {bf16});
  return {shape, fp32.best_flops(), bf16.best_flops()};
}

ops::Float32Products Float32Rates::faster() const {
  constexpr double kClearly = 1.15;
  return amx >= kClearly * vectors ? ops::Float32Products::amx : ops::Float32Products::vectors;
}

Float32Rates measure_float32_products() {
  using enum ops::Float32Products;
  const auto before = ops::float32_products();
  const ProductShape shape;
  Product by_vectors(shape, at::kFloat, at::kCPU), by_amx(shape, at::kFloat, at::kCPU);
  run_in_turn({by_vectors, [] { ops::set_float32_products(vectors); }},
              {by_amx, [] { ops::set_float32_products(amx); }});
  ops::set_float32_products(before);
  return {by_vectors.best_flops(), by_amx.best_flops()};
}

}  // namespace retort::bench
