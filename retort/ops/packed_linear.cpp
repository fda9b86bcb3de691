#include "retort/ops/packed_linear.h"

#include <ATen/ATen.h>

#include "retort/base/error.h"
#include "retort/kernels/cpu/panel_product.h"
#include "retort/ops/matrix_product.h"
#include "retort/ops/operation_clock.h"
#include "retort/ops/path.h"

namespace retort::ops {

PackedLinear::PackedLinear(const at::Tensor& w_MK) : inputs_(w_MK.size(1)), outputs_(w_MK.size(0)) {
  weights_ = path_of(w_MK.device()) == Path::cpu ? kernels::cpu::packed_panels(w_MK) : w_MK;
}

std::int64_t packed_linear_bytes(std::int64_t outputs, std::int64_t inputs, std::int64_t item_bytes) {
  return kernels::cpu::panel_elements(outputs, inputs) * item_bytes;
}

at::Tensor linear_apart(const at::Tensor& x_NK, const PackedLinear& weights) {
  const InOperation timed(Operation::product);
  base::ensure(x_NK.size(1) == weights.inputs(), "linear_apart takes as many inputs as the weights have");
  if (path_of(x_NK.device()) == Path::cpu)
    return kernels::cpu::panel_product(x_NK, weights.weights(), weights.outputs());
  return matrix_product(x_NK, weights.weights().to(x_NK.scalar_type()).t());
}

}  // namespace retort::ops
