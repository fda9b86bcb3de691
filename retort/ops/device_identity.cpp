#include "retort/ops/device_identity.h"

#include <dlfcn.h>

#include <initializer_list>

#include "retort/ops/device_memory.h"

namespace retort::ops {
namespace {

using UuidOf = int (*)(char* uuid, int device);

constexpr const char* kOfCuda = "cuDeviceGetUuid_v2";
constexpr const char* kOfHip = "hipDeviceGetUuid";

struct Driver {
  const char* library;  // as libtorch has loaded it
  const char* function;
};

UuidOf driver_function() {
  // A library that brings a device of its own may bring this function too.
  for (const char* name : {kOfCuda, kOfHip})
    if (void* function = ::dlsym(RTLD_DEFAULT, name)) return reinterpret_cast<UuidOf>(function);
  for (const auto& [library, name] : {Driver{"libcuda.so.1", kOfCuda}, Driver{"libamdhip64.so", kOfHip},
                                      Driver{"libamdhip64.so.7", kOfHip}, Driver{"libamdhip64.so.6", kOfHip}})
    if (void* loaded = ::dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD))
      if (void* function = ::dlsym(loaded, name)) return reinterpret_cast<UuidOf>(function);
  return nullptr;
}

}  // namespace

DeviceIdentity identity_of(at::Device device) {
  static const UuidOf kUuidOf = driver_function();
  DeviceIdentity uuid{};
  if (!kUuidOf || kUuidOf(uuid.data(), index_of(device)) != 0) return {};
  return uuid;
}

}  // namespace retort::ops
