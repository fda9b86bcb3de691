#pragma once
// Where an operation of ops/ is carried out.  Each has bodies of one signature: loops in kernels/cpu/,
// compositions of libtorch's operations in kernels/device/, for any accelerator, and kernels in
// kernels/cuda/.

#include <c10/core/Device.h>

namespace retort::ops {

enum class Path { cpu, device, cuda };

/// The path of tensors on `device`: `cpu` on a CPU, `cuda` where kernels can be made
/// (kernels/cuda/kernels.h), and `device` elsewhere.
Path path_of(c10::Device device);

}  // namespace retort::ops
