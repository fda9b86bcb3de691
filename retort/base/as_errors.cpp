#include "retort/base/as_errors.h"

#include <sys/resource.h>

#include <filesystem>
#include <new>
#include <system_error>

#include "retort/base/error.h"
#include "retort/base/units.h"

namespace retort::base {

void as_errors(const std::function<void()>& act) try {
  act();
} catch (const std::filesystem::filesystem_error& error) {
  throw StorageError(join(error.path1().string(), ": ", error.code().message(), "."));
} catch (const std::bad_alloc&) {
  throw MemoryError(out_of_memory());
} catch (const std::system_error& error) {
  if (error.code() != std::errc::resource_unavailable_try_again) throw;
  throw EnvironmentError(join("the system starts no more threads (", error.code().message(),
                              "); raise the limit of processes (ulimit -u) or of memory (ulimit -v)."));
}

std::string out_of_memory() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kOutOfMemory;
  return join("out of memory; raise the limit of this process, ", human_bytes(limit.rlim_cur),
              " (ulimit -v), or use shorter sequences or smaller micro-batches.");
}

}  // namespace retort::base
