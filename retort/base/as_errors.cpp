#include "retort/base/as_errors.h"

#include <filesystem>
#include <new>

#include "retort/base/error.h"

namespace retort::base {

void as_errors(const std::function<void()>& act) try {
  act();
} catch (const std::filesystem::filesystem_error& error) {
  throw StorageError(join(error.path1().string(), ": ", error.code().message(), "."));
} catch (const std::bad_alloc&) {
  throw MemoryError(kOutOfMemory);
}

}  // namespace retort::base
