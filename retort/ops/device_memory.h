#pragma once
// Memory of the device that tensors lie on, as its allocator knows it.

#include <c10/core/Device.h>

#include <cstdint>

namespace retort::ops {

/// Bytes that tensors of an accelerator can still take.
std::int64_t free_bytes(at::Device device);

/// Peak of the bytes of live tensors since the last reset, of CPU tensors as tensor_allocator.h says.
std::int64_t peak_tensor_bytes(at::Device device);
void reset_peak_tensor_bytes(at::Device device);

}  // namespace retort::ops
