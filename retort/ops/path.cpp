// Alone in its file: a test program that links a definition of its own takes the path of a device on a CPU.
#include "retort/ops/path.h"

#include "retort/kernels/cuda/kernels.h"

namespace retort::ops {

Path path_of(c10::Device device) {
  if (device.is_cpu()) return Path::cpu;
  return kernels::cuda::has_kernels(device) ? Path::cuda : Path::device;
}

}  // namespace retort::ops
