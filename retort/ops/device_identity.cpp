#include "retort/ops/device_identity.h"

#include <dlfcn.h>

#include <initializer_list>

#include "retort/kernels/device_index.h"

namespace retort::ops {
namespace {

using UuidOf = int (*)(char* uuid, int device);

constexpr const char* kCudaFunction = "cuDeviceGetUuid_v2";
constexpr const char* kHipFunction = "hipDeviceGetUuid";

struct Driver {
  const char* library;  // that libtorch loads
  const char* function;
};

UuidOf driver_function() {
  // A library that brings a device of its own may bring this function too.
  for (const char* name : {kCudaFunction, kHipFunction})
    if (void* function = ::dlsym(RTLD_DEFAULT, name)) return reinterpret_cast<UuidOf>(function);
  for (const auto& [library, name] :
       {Driver{"libcuda.so.1", kCudaFunction}, Driver{"libamdhip64.so", kHipFunction},
        Driver{"libamdhip64.so.7", kHipFunction}, Driver{"libamdhip64.so.6", kHipFunction}})
    if (void* loaded = ::dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD))
      if (void* function = ::dlsym(loaded, name)) return reinterpret_cast<UuidOf>(function);
  return nullptr;
}

}  // namespace

std::string identity_of(at::Device device) {
  static const UuidOf kUuidOf = driver_function();
  std::string uuid(16, '\0');
  const bool told = kUuidOf && kUuidOf(uuid.data(), kernels::index_of(device)) == 0;
  return told ? uuid : std::to_string(kernels::index_of(device));
}

}  // namespace retort::ops
