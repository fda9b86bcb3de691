#include "retort/ops/device_memory.h"

#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>

#include "retort/kernels/device_index.h"
#include "retort/ops/tensor_allocator.h"

namespace retort::ops {

using kernels::index_of;

namespace {

// Its figures are there once the device was begun to be used, which the first tensor on it does.
c10::DeviceAllocator& allocator_of(at::Device device) {
  at::globalContext().lazyInitDevice(device.type());
  return *c10::getDeviceAllocator(device.type());
}

constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

}  // namespace

std::int64_t free_bytes(at::Device device) {
  return static_cast<std::int64_t>(allocator_of(device).getMemoryInfo(index_of(device)).first);
}

std::int64_t peak_tensor_bytes(at::Device device) {
  if (device.is_cpu()) return peak_tensor_bytes();
  return allocator_of(device).getDeviceStats(index_of(device)).allocated_bytes[kAll].peak;
}

void reset_peak_tensor_bytes(at::Device device) {
  device.is_cpu() ? reset_peak_tensor_bytes() : allocator_of(device).resetPeakStats(index_of(device));
}

}  // namespace retort::ops
