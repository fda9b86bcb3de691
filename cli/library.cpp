#include "cli/library.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "retort/base/as_errors.h"
#include "retort/base/error.h"

namespace retort::cli {
namespace {

// Threads of libgomp spin for a while at the end of a parallel loop.  As soon as anything else runs on the
// machine, a spinning thread holds the processor that the thread it waits for needs: steps took three to ten
// times as long.  libgomp reads the variable while it is loaded, which is below.
void let_threads_sleep() {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  ::setenv("OMP_WAIT_POLICY", "passive", 0);
}

// The loader has words for it in place of numbers.
bool lacks_memory(const std::string& why) {
  return why.find("failed to map segment") != std::string::npos ||
         why.find(base::system_message(ENOMEM)) != std::string::npos;
}

const pipeline::Library& load() {
  let_threads_sleep();
  void* loaded = ::dlopen(RETORT_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
  const std::string why = loaded ? "" : ::dlerror();
  base::require<base::MemoryError>(!lacks_memory(why), "cannot load the library that computes (", why,
                                   "): ", base::out_of_memory());
  base::require<base::EnvironmentError>(loaded, "cannot load the library that computes (", why,
                                        "); install Retort again, with the torch that it was built for.");
  using Door = decltype(&retort_library);
  const auto door = reinterpret_cast<Door>(::dlsym(loaded, "retort_library"));
  base::require<base::EnvironmentError>(door, RETORT_LIBRARY,
                                        " is of another release than the program; install Retort again.");
  return *door();
}

}  // namespace

const pipeline::Library& library() {
  static const pipeline::Library& loaded = load();
  return loaded;
}

}  // namespace retort::cli
