#pragma once
// A tensor as a group sees it.

#include <ATen/core/Tensor.h>

#include "retort/comm/buffer.h"

namespace retort::shard {

/// `x` is contiguous, of float64, float32 or bfloat16.
comm::Buffer buffer_of(const at::Tensor& x);

/// How a group copies memory of this accelerator, the only one that this process computes on.
comm::DeviceMemory memory_of(at::Device device);

}  // namespace retort::shard
