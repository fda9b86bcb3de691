#include "retort/base/error.h"

#include <system_error>

namespace retort::base {

void ensure(bool ok, const char* what, const char* file, int line) {
  if (!ok) [[unlikely]]
    throw InternalError(join("internal check failed at ", file, ":", line, ": ", what,
                             "; please report it with the command and the recipe."));
}

void throw_error(ExitCode code, const std::string& message) {
  switch (code) {
    case ExitCode::usage:
      throw UsageError(message);
    case ExitCode::data:
      throw DataError(message);
    case ExitCode::model:
      throw ModelError(message);
    case ExitCode::environment:
      throw EnvironmentError(message);
    case ExitCode::memory:
      throw MemoryError(message);
    case ExitCode::storage:
      throw StorageError(message);
    case ExitCode::validation:
      throw ValidationError(message);
    case ExitCode::temporary:
      throw PeerError(message);
    case ExitCode::stopped:
      throw ErrorOf<ExitCode::stopped>(message);
    case ExitCode::ok:
    case ExitCode::internal:
      break;
  }
  throw InternalError(message);
}

std::string system_message(int code) {
  return std::generic_category().message(code);
}

}  // namespace retort::base
