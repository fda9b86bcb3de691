// Alone in its file: a test program that links definitions of its own runs the kernels on a CPU.
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <tuple>

#include "retort/base/error.h"
#include "retort/kernels/cuda/compiler.h"
#include "retort/kernels/cuda/kernels.h"
#include "retort/kernels/device_index.h"

namespace retort::kernels::cuda {
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

namespace {

// Why no kernels can be made for the device; empty where one was.
std::string why_none(const Library& library, c10::DeviceIndex device) try {
  constexpr int kOldest = 80;  // from which on the library's attention knows bfloat16
  const int arch = arch_of(library.call, device);
  if (arch < kOldest) return "the device is older than compute capability 8.0";
  if (std::ranges::count(library.archs, arch) == 0) return "NVRTC does not know the device";
  compiled(library.call, "add_rows<1>", false, arch);
  return {};
} catch (const base::InternalError& error) {
  return error.what();
}

// The same of this process; found out once for each device.
std::string why_none(c10::Device device) {
  if (!wanted()) return "RETORT_KERNELS says so";
  std::string why_not;
  const auto* found = library(&why_not);
  if (!found) return why_not;
  static std::mutex mutex;
  static std::map<c10::DeviceIndex, std::string> known;
  const std::lock_guard lock(mutex);
  const auto index = index_of(device);
  const auto answer = known.find(index);
  return answer != known.end() ? answer->second : known[index] = why_none(*found, index);
}

}  // namespace

bool has_kernels(c10::Device device) {
  return device.is_cuda() && why_none(device).empty();
}

std::string describe_kernels(c10::Device device) {
  const auto why = device.is_cuda() ? why_none(device) : "they are for NVIDIA's alone";
  if (!why.empty()) return "compositions of libtorch's operations, not own kernels: " + why;
  const auto version = library()->version;
  return base::join("own kernels, compiled by NVRTC ", version / 100, ".", version % 100);
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

}  // namespace retort::kernels::cuda
