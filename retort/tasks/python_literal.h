#pragma once
// What ast.literal_eval of Python makes of a text.

#include <string>
#include <string_view>

#include "retort/base/json.h"

namespace retort::tasks {

/// Why Python reads no literal in a text, or one that Retort lacks.
struct LiteralFault {
  std::string reason;
};

/// Texts, numbers, True, False, None, and lists, tuples and maps of them; a tuple becomes a list.  Throws
/// LiteralFault, also for bytes, sets, complex numbers, keys that are no texts, and numbers beyond 64 bits.
base::Json python_literal(std::string_view text);

}  // namespace retort::tasks
