// Alone in its file: a test program that links definitions of its own runs the kernels on a CPU.
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <tuple>

#include "retort/base/error.h"
#include "retort/ops/cuda/compiler.h"
#include "retort/ops/cuda/kernels.h"

namespace retort::ops::cuda {
namespace {

void ensure_done(const Functions& call, int failed, const std::string& what) {
  if (failed == kSuccess) return;
  const char* text = nullptr;
  call.cuGetErrorString(failed, &text);
  throw base::InternalError(base::join(what, ": CUDA says: ", text ? text : "an unknown error", "."));
}

int arch_of(const Functions& call, c10::DeviceIndex device) {
  int major = 0, minor = 0;
  ensure_done(call, call.cuDeviceGetAttribute(&major, kComputeCapabilityMajor, device), "a device's kind");
  ensure_done(call, call.cuDeviceGetAttribute(&minor, kComputeCapabilityMinor, device), "a device's kind");
  return 10 * major + minor;
}

c10::DeviceIndex index_of(c10::Device device) {
  return device.has_index() ? device.index() : c10::impl::VirtualGuardImpl(device.type()).getDevice().index();
}

// libtorch's context, which a thread that launched nothing yet does not have.
void enter_context(const Functions& call, c10::DeviceIndex device) {
  static std::mutex mutex;
  static std::map<c10::DeviceIndex, CUcontext> contexts;
  const std::lock_guard lock(mutex);
  auto& context = contexts[device];
  if (!context) ensure_done(call, call.cuDevicePrimaryCtxRetain(&context, device), "a device's context");
  CUcontext current = nullptr;
  ensure_done(call, call.cuCtxGetCurrent(&current), "a device's context");
  if (current != context) ensure_done(call, call.cuCtxSetCurrent(context), "a device's context");
}

CUfunction made(const Functions& call, c10::DeviceIndex device, bool bf16, const std::string& name) {
  const auto of = compiled(call, name, bf16, arch_of(call, device));
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ensure_done(call, call.cuModuleLoadData(&module, of.code.data()), "kernel " + name);
  ensure_done(call, call.cuModuleGetFunction(&function, module, of.name.c_str()), "kernel " + name);
  return function;
}

// They live as long as the process.
CUfunction find(const Functions& call, c10::DeviceIndex device, bool bf16, const std::string& name) {
  static std::mutex mutex;
  static std::map<std::tuple<c10::DeviceIndex, bool, std::string>, CUfunction> functions;
  const std::lock_guard lock(mutex);
  auto& function = functions[{device, bf16, name}];
  if (!function) function = made(call, device, bf16, name);
  return function;
}

bool wanted() {
  static const char* said = std::getenv("RETORT_KERNELS");
  return !said || std::string_view(said) != "none";
}

}  // namespace

bool has_kernels(c10::Device device) {
  if (!device.is_cuda() || !wanted()) return false;
  const auto* found = library();
  if (!found) return false;
  static std::mutex mutex;
  static std::map<c10::DeviceIndex, bool> known;
  const std::lock_guard lock(mutex);
  const auto index = index_of(device);
  auto answer = known.find(index);
  if (answer == known.end())
    answer = known.emplace(index, std::ranges::count(found->archs, arch_of(found->call, index)) > 0).first;
  return answer->second;
}

std::string describe_kernels(c10::Device device) {
  if (!device.is_cuda()) return "compositions of libtorch's operations";
  if (!wanted()) return "compositions of libtorch's operations, as RETORT_KERNELS says";
  std::string why_not;
  const auto* found = library(&why_not);
  if (!found) return "compositions of libtorch's operations: " + why_not;
  const auto version = std::to_string(found->version / 100) + "." + std::to_string(found->version % 100);
  if (!has_kernels(device))
    return "compositions of libtorch's operations: NVRTC " + version + " does not know this device";
  return "own kernels, compiled by NVRTC " + version;
}

void launch(const std::string& name, at::ScalarType type, Grid grid, const at::Tensor& x, void** arguments) {
  const auto& call = library()->call;
  const auto device = index_of(x.device());
  enter_context(call, device);
  const auto function = find(call, device, type == at::kBFloat16, name);
  const auto stream = c10::impl::VirtualGuardImpl(x.device().type()).getStream(x.device());
  ensure_done(call,
              call.cuLaunchKernel(function, static_cast<unsigned>(grid.blocks), 1, 1,
                                  static_cast<unsigned>(grid.threads), 1, 1, 0, stream.native_handle(),
                                  arguments, nullptr),
              "kernel " + name);
}

}  // namespace retort::ops::cuda
