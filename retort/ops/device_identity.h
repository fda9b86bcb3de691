#pragma once
// Which accelerator of a machine a number means.

#include <c10/core/Device.h>

#include <string>

namespace retort::ops {

/// What is the same in every process of a machine: the UUID by the driver of CUDA or HIP, or the number where
/// neither tells one.  Two processes may know one accelerator by different numbers, and different ones by the
/// same number.  Ask after accelerators were counted, which sets the driver up.
std::string identity_of(at::Device device);

}  // namespace retort::ops
