#pragma once
// How fast this machine multiplies matrices: the yardstick that throughput is compared with.

#include <ATen/core/Tensor.h>

namespace retort::bench {

/// Floating-point operations per second of the best of several products of 1024 x 1024 x 1024 (about 0.2
/// seconds).
double matrix_product_flops(at::ScalarType dtype, at::Device device);

}  // namespace retort::bench
