#include <dlfcn.h>

#include "retort/base/error.h"
#include "retort/parquet/module.h"

namespace retort::parquet {
namespace {

constexpr const char* kModule = "libretort_parquet.so";

using Open = decltype(&retort_parquet_open);

std::string install(const char* then) {
  return base::join("; run pip install pyarrow==", RETORT_PYARROW, " ", then, ".");
}

struct Module {
  Open open = nullptr;
  std::string why_not = {};
};

// Never unloaded: tables and readers have their code in it.
Module load() {
  void* loaded = ::dlopen(kModule, RTLD_NOW | RTLD_LOCAL);
  if (!loaded) {
    const std::string why = ::dlerror();
    if (why.find(kModule) == 0 && why.find("No such file") != why.npos)
      return {.why_not = "this Retort was built without Apache Arrow, which reads Parquet files" +
                         install("and build again with -DRETORT_ARROW=DIRECTORY of this package")};
    return {.why_not = base::join("Apache Arrow, which reads Parquet files, does not load (", why, ")") +
                       install("into the Python that Retort was built or installed with")};
  }
  const auto release =
      reinterpret_cast<decltype(&retort_parquet_release)>(::dlsym(loaded, "retort_parquet_release"));
  const auto open = reinterpret_cast<Open>(::dlsym(loaded, "retort_parquet_open"));
  if (!release || !open || std::string(release()) != RETORT_RELEASE)
    return {.why_not = base::join(kModule, " is of another release than the program; install Retort again.")};
  return {.open = open};
}

const Module& module() {
  static const Module loaded = load();
  return loaded;
}

}  // namespace

std::string why_not_here() {
  return module().why_not;
}

std::unique_ptr<Table> open(const base::Path& path, const Limits& limits) {
  base::require<base::EnvironmentError>(module().open, path.string(), ": ", module().why_not);
  return std::unique_ptr<Table>(module().open(path, limits));
}

}  // namespace retort::parquet
