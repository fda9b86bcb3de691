#include "retort/base/error.h"

#include <system_error>

namespace retort::base {

void ensure(bool ok, const char* what, const char* file, int line) {
  if (!ok) [[unlikely]]
    throw InternalError(join("internal check failed at ", file, ":", line, ": ", what,
                             "; please report it with the command and the recipe."));
}

std::string system_message(int code) {
  return std::generic_category().message(code);
}

}  // namespace retort::base
