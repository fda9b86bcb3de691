#include "retort/comm/nccl/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/loaded_library.h"

namespace retort::comm::nccl {
namespace {

constexpr int kOldest = 21400;  // the first whose calls need not block
constexpr const char* kNames[] = {"libnccl.so.2", "librccl.so.1"};

// Two of them in a process would not know of each other, so one that is there is taken first.
void* opened(std::string& file) {
  for (const char* name : kNames)
    if (void* loaded = ::dlopen((file = name).c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD); loaded)
      return loaded;
  std::vector<std::filesystem::path> files;
  if (const auto torch = base::folder_of_library("libtorch_cpu.so"); !torch.empty()) {
    const auto packages = torch.parent_path().parent_path();
    files = {packages / "nvidia/nccl/lib" / kNames[0], torch / kNames[0], torch / kNames[1]};
  }
  files.insert(files.end(), std::begin(kNames), std::end(kNames));
  for (const auto& candidate : files)
    if (void* loaded = ::dlopen((file = candidate.string()).c_str(), RTLD_NOW | RTLD_LOCAL); loaded)
      return loaded;
  throw base::EnvironmentError(
      "ranks on accelerators: expected libnccl.so.2 or librccl.so.1, found neither; install RCCL or NCCL "
      "(pip install nvidia-nccl-cu13), name the file in RETORT_NCCL, or set RETORT_NCCL=none to exchange "
      "through the memory of the processor, which is slower.");
}

template <typename Function>
void find(void* loaded, const std::string& file, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(loaded, name));
  base::require<base::EnvironmentError>(function, file,
                                        ": expected NCCL 2.14 or newer, found a library without ", name,
                                        "; install a newer one.");
}

Functions functions_of(void* loaded, const std::string& file) {
  Functions call{};
#define RETORT_FIND(name) find(loaded, file, #name, call.name)
  RETORT_FIND(ncclGetVersion);
  RETORT_FIND(ncclGetUniqueId);
  RETORT_FIND(ncclCommInitRankConfig);
  RETORT_FIND(ncclCommGetAsyncError);
  RETORT_FIND(ncclCommFinalize);
  RETORT_FIND(ncclCommDestroy);
  RETORT_FIND(ncclCommAbort);
  RETORT_FIND(ncclGetErrorString);
  RETORT_FIND(ncclGroupStart);
  RETORT_FIND(ncclGroupEnd);
  RETORT_FIND(ncclAllGather);
  RETORT_FIND(ncclBroadcast);
  RETORT_FIND(ncclSend);
  RETORT_FIND(ncclRecv);
#undef RETORT_FIND
  return call;
}

}  // namespace

std::shared_ptr<const Library> library() {
  std::string file;
  void* loaded = nullptr;
  if (const char* named = std::getenv("RETORT_NCCL"); named && *named) {
    if (file = named; file == "none") return nullptr;
    loaded = ::dlopen(named, RTLD_NOW | RTLD_LOCAL);
    base::require<base::EnvironmentError>(loaded, "RETORT_NCCL: ", loaded ? "" : ::dlerror(),
                                          "; name the file of NCCL or RCCL, or none.");
  } else {
    loaded = opened(file);
  }
  auto library = std::make_shared<Library>(Library{functions_of(loaded, file), file});
  library->call.ncclGetVersion(&library->version);
  base::require<base::EnvironmentError>(library->version >= kOldest, file,
                                        ": expected NCCL 2.14 or newer, found ", library->version,
                                        "; install a newer one.");
  return library;
}

}  // namespace retort::comm::nccl
