#pragma once
// Where an operation of ops/ is carried out.  Each has two bodies of one signature: loops in ops/cpu/, and
// compositions of libtorch's operations in ops/device/, for accelerators.

#include <c10/core/Device.h>

namespace retort::ops {

enum class Path { cpu, device };

/// The path of tensors on `device`: `cpu` on a CPU, and `device` elsewhere.
Path path_of(c10::Device device);

}  // namespace retort::ops
