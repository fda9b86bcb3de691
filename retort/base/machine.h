#pragma once
// What the machine offers to this process.

#include <cstdint>

namespace retort::base {

/// Memory that this process may still take: what the kernel calls available, or what its control group
/// leaves, whichever is less; bytes.
std::int64_t available_memory_bytes();

/// Seconds of a clock that only goes forward.
double monotonic_seconds();

}  // namespace retort::base
