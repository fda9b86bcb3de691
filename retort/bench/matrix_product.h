#pragma once
// How fast this machine multiplies matrices: the yardstick that throughput is compared with.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "retort/ops/float32_products.h"

namespace retort::bench {

/// Floating-point operations per second of the best of several products of square matrices.  Their side is
/// 1024; where a product takes less than a millisecond it is doubled, up to 8192 and as memory allows.  Each
/// side takes about 0.2 seconds.
double matrix_product_flops(at::ScalarType dtype, at::Device device);

/// Floating-point operations per second of products, the best and over all of the time.
struct MatrixRates {
  double best = 0, mean = 0;
};

/// Measures for about half a second, so that neighbours on the machine are met; sides as
/// matrix_product_flops().
MatrixRates matrix_rates(at::ScalarType dtype, at::Device device);

/// [rows, inner] times [inner, columns].
struct ProductShape {
  std::int64_t rows = 1024, inner = 1024, columns = 1024;
  double flops() const;
};

/// One product in the two types that a model may be trained in; floating-point operations per second.
struct TypeRates {
  ProductShape shape;
  double fp32 = 0, bf16 = 0;

  /// bf16 where it is faster by a tenth at least, fp32 elsewhere.
  at::ScalarType faster() const;
};

/// Measures both types in turn, 50 ms and two products of each at least, and keeps the best of each.  A shape
/// that is too large for that is taken smaller.
TypeRates measure_types(ProductShape shape, at::Device device);

/// One product of float32 matrices by both ways that a CPU with AMX has; floating-point operations per
/// second.
struct Float32Rates {
  double vectors = 0, amx = 0;

  /// AMX where it is faster by 15 % at least: of the processors that were measured it gains 30 % or nothing.
  ops::Float32Products faster() const;
};

/// Measures both in turn as measure_types() does, where there is AMX.  What float32_products() says stays.
Float32Rates measure_float32_products();

}  // namespace retort::bench
