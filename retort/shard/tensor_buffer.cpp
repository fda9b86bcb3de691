#include "retort/shard/tensor_buffer.h"

#include <ATen/ATen.h>

#include "retort/base/error.h"

namespace retort::shard {
namespace {

comm::Type type_of(const at::Tensor& x) {
  switch (x.scalar_type()) {
    case at::kDouble:
      return comm::Type::f64;
    case at::kFloat:
      return comm::Type::f32;
    case at::kBFloat16:
      return comm::Type::bf16;
    default:
      base::ensure(false, "numbers of a group are float64, float32 or bfloat16");
      return comm::Type::bytes;
  }
}

}  // namespace

comm::Buffer buffer_of(const at::Tensor& x) {
  return {x.data_ptr(), x.numel(), type_of(x), x.is_cpu() ? comm::Device::cpu : comm::Device::accelerator};
}

}  // namespace retort::shard
