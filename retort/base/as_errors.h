#pragma once
// What the standard library throws, in our own words.

#include <functional>

namespace retort::base {

/// Runs `act`.  Throws StorageError where the standard library reports a file, MemoryError where it has no
/// memory, and everything else as it is.
void as_errors(const std::function<void()>& act);

}  // namespace retort::base
