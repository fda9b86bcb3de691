#include "retort/ops/float32_products.h"

#include <atomic>

#include "retort/kernels/cpu/amx_kernels.h"

namespace retort::ops {
namespace {

std::atomic<Float32Products> of_process = Float32Products::amx;

}  // namespace

bool has_float32_amx() {
  return kernels::amx_kernels() != nullptr;
}

Float32Products float32_products() {
  return has_float32_amx() ? of_process.load() : Float32Products::vectors;
}

void set_float32_products(Float32Products by) {
  of_process = by;
}

}  // namespace retort::ops
