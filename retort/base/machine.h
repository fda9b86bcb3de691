#pragma once
// What the machine offers to this process.

#include <cstdint>
#include <string>

#include "retort/base/files.h"

namespace retort::base {

/// Memory that this process may still take, in bytes: what the kernel calls available, or what its control
/// groups leave, whichever is less.  `root` has the directories proc and sys.
std::int64_t available_memory_bytes(const Path& root = "/");

/// The name of this machine among others.
std::string host_name();

/// Seconds of a clock that only goes forward.
double monotonic_seconds();

}  // namespace retort::base
