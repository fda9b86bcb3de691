#pragma once
// Which accelerator of a machine a number means.

#include <c10/core/Device.h>

#include <array>

namespace retort::ops {

/// All zero: not known.
using DeviceIdentity = std::array<char, 16>;

/// The UUID that CUDA or HIP gives an accelerator.  Two processes may know one accelerator by different
/// numbers, and different ones by the same number.
DeviceIdentity identity_of(at::Device device);

}  // namespace retort::ops
