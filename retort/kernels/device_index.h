#pragma once
// Which accelerator a device is.

#include <c10/core/Device.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace retort::kernels {

/// The number of an accelerator; where it has none, that of the calling thread's.
inline c10::DeviceIndex index_of(c10::Device device) {
  return device.has_index() ? device.index() : c10::impl::VirtualGuardImpl(device.type()).getDevice().index();
}

}  // namespace retort::kernels
