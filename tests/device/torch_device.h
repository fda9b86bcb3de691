#pragma once
// The test device for libtorch, as the device "testdevice": whoever links or preloads this library has it.

#include <c10/core/Device.h>

namespace retort::test {

/// Test device number `number`.
c10::Device torch_device(int number);

}  // namespace retort::test
