#pragma once
// A tensor as a group sees it.

#include <ATen/core/Tensor.h>

#include "retort/comm/buffer.h"

namespace retort::shard {

/// `x` is contiguous, of float64, float32 or bfloat16.
comm::Buffer buffer_of(const at::Tensor& x);

}  // namespace retort::shard
