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

// Of this process: a plain function has no place for it.
at::Device copied_from = at::kCPU;

// Bytes that others own.
at::Tensor bytes_at(const void* data, std::int64_t bytes, at::Device device) {
  return at::from_blob(const_cast<void*>(data), {bytes}, at::TensorOptions().dtype(at::kByte).device(device));
}

// Copies between devices wait for what was queued before, and return when they are done.
void to_host(void* host, const void* device, std::int64_t bytes) {
  bytes_at(host, bytes, at::kCPU).copy_(bytes_at(device, bytes, copied_from));
}
void to_device(void* device, const void* host, std::int64_t bytes) {
  bytes_at(device, bytes, copied_from).copy_(bytes_at(host, bytes, at::kCPU));
}

}  // namespace

comm::Buffer buffer_of(const at::Tensor& x) {
  return {x.data_ptr(), x.numel(), type_of(x), x.is_cpu() ? comm::Device::cpu : comm::Device::accelerator};
}

comm::DeviceMemory memory_of(at::Device device) {
  copied_from = device;
  return {to_host, to_device};
}

}  // namespace retort::shard
