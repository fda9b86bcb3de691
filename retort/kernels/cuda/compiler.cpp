#include "retort/kernels/cuda/compiler.h"

#include <dlfcn.h>

#include <array>
#include <filesystem>
#include <optional>

#include "retort/base/error.h"
#include "retort/base/loaded_library.h"
#include "retort/kernels/cuda/sources.h"

namespace retort::kernels::cuda {
namespace {

// Looks functions up, and remembers the first that is not there.
class Symbols {
 public:
  explicit Symbols(void* loaded) : loaded_(loaded) {}

  template <typename Function>
  void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(loaded_, name));
    if (!function && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* loaded_;
  std::string missing_;
};

#define RETORT_FIND(name) symbols.find(#name, call.name)

std::string find_driver(void* loaded, Functions& call) {
  Symbols symbols(loaded);
  RETORT_FIND(cuInit);
  RETORT_FIND(cuGetErrorString);
  RETORT_FIND(cuDeviceGetAttribute);
  RETORT_FIND(cuDevicePrimaryCtxRetain);
  RETORT_FIND(cuCtxGetCurrent);
  RETORT_FIND(cuCtxSetCurrent);
  RETORT_FIND(cuModuleLoadData);
  RETORT_FIND(cuModuleGetFunction);
  RETORT_FIND(cuLaunchKernel);
  return symbols.missing();
}

// The compiler asks for this library by its name alone, and lies where no one looks for names.
void open_builtins(const Library& library) {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(library.call.nvrtcVersion), &info) == 0) return;
  const auto name = base::join("libnvrtc-builtins.so.", library.version / 100, ".", library.version % 100);
  ::dlopen((std::filesystem::path(info.dli_fname).parent_path() / name).c_str(), RTLD_NOW | RTLD_LOCAL);
}

struct Search {
  std::optional<Library> found;
  std::string why_not;
};

// libtorch reaches the compiler and the driver through a library of its own, which needs both; so what is
// found through it is what fits this libtorch.
Search search() {
  const auto file = (base::folder_of_library("libtorch_cpu.so") / "libcaffe2_nvrtc.so").string();
  void* loaded = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!loaded) return {{}, ::dlerror()};
  Library library{};
  for (const auto& missing : {find_compiler(loaded, library.call), find_driver(loaded, library.call)})
    if (!missing.empty()) return {{}, file + " leads to no " + missing};
  if (library.call.cuInit(0) != kSuccess) return {{}, "the driver finds no device"};
  int major = 0, minor = 0, count = 0;
  library.call.nvrtcVersion(&major, &minor);
  library.version = 100 * major + minor;
  open_builtins(library);
  library.call.nvrtcGetNumSupportedArchs(&count);
  library.archs.resize(static_cast<std::size_t>(count));
  library.call.nvrtcGetSupportedArchs(library.archs.data());
  return {library, {}};
}

constexpr const char* kPrelude = R"(
#define CHECK_ALIGNED(pointer, bytes)
template <typename T>
__device__ T shuffle_xor(T x, int lanes) {
  return __shfl_xor_sync(0xffffffffu, x, lanes);
}
)";

std::string log_of(const Functions& call, nvrtcProgram program) {
  std::size_t bytes = 0;
  call.nvrtcGetProgramLogSize(program, &bytes);
  std::string log(bytes, '\0');
  if (bytes > 0) call.nvrtcGetProgramLog(program, log.data());
  return log;
}

}  // namespace

std::string find_compiler(void* loaded, Functions& call) {
  Symbols symbols(loaded);
  RETORT_FIND(nvrtcVersion);
  RETORT_FIND(nvrtcGetNumSupportedArchs);
  RETORT_FIND(nvrtcGetSupportedArchs);
  RETORT_FIND(nvrtcCreateProgram);
  RETORT_FIND(nvrtcAddNameExpression);
  RETORT_FIND(nvrtcGetLoweredName);
  RETORT_FIND(nvrtcCompileProgram);
  RETORT_FIND(nvrtcGetProgramLogSize);
  RETORT_FIND(nvrtcGetProgramLog);
  RETORT_FIND(nvrtcGetCUBINSize);
  RETORT_FIND(nvrtcGetCUBIN);
  RETORT_FIND(nvrtcDestroyProgram);
  return symbols.missing();
}

const Library* library(std::string* why_not) {
  static const Search found = search();
  if (why_not) *why_not = found.why_not;
  return found.found ? &*found.found : nullptr;
}

Compiled compiled(const Functions& call, const std::string& name, bool bf16, int arch) {
  const std::string source = kPrelude + std::string(kKernelSource);
  const std::array headers = {kArgumentsSource};
  const std::array names = {"retort/kernels/cuda/arguments.h"};
  const auto target = base::join("-arch=sm_", arch);
  const std::array options = {target.c_str(), "-std=c++17",
                              bf16 ? "-DSCALAR_IS_BF16=1" : "-DSCALAR_IS_BF16=0"};
  nvrtcProgram program = nullptr;
  int failed =
      call.nvrtcCreateProgram(&program, source.c_str(), "kernels.cu", 1, headers.data(), names.data());
  base::require<base::InternalError>(failed == kSuccess, "NVRTC made no program: error ", failed, ".");
  call.nvrtcAddNameExpression(program, name.c_str());
  failed = call.nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
  const auto log = failed == kSuccess ? std::string() : log_of(call, program);
  Compiled result;
  std::size_t bytes = 0;
  const char* lowered = nullptr;
  if (failed == kSuccess && call.nvrtcGetCUBINSize(program, &bytes) == kSuccess &&
      call.nvrtcGetLoweredName(program, name.c_str(), &lowered) == kSuccess) {
    result = {std::string(bytes, '\0'), lowered};
    call.nvrtcGetCUBIN(program, result.code.data());
  }
  call.nvrtcDestroyProgram(&program);
  base::require<base::InternalError>(!result.code.empty(), "NVRTC did not compile ", name, " for ", target,
                                     ": ", log);
  return result;
}

}  // namespace retort::kernels::cuda
