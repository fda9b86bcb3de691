// Alone in its file: a test program that links a definition of its own takes the path of a device on a CPU.
#include "retort/ops/path.h"

namespace retort::ops {

Path path_of(c10::Device device) {
  return device.is_cpu() ? Path::cpu : Path::device;
}

}  // namespace retort::ops
