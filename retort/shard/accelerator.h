#pragma once
// libtorch's accelerators as a group sees them.

#include <c10/core/Device.h>

#include <memory>

#include "retort/comm/accelerator.h"

namespace retort::shard {

/// The accelerator of index `device`, on which this process computes.  Of any kind that libtorch knows.
std::shared_ptr<comm::Accelerator> accelerator_of(at::Device device);

}  // namespace retort::shard
