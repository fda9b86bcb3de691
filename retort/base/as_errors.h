#pragma once
// What the standard library throws, in our own words.

#include <functional>
#include <string>

namespace retort::base {

/// Runs `act`.  Throws StorageError where the standard library reports a file, MemoryError where it has no
/// memory, EnvironmentError where the system starts no thread, and everything else as it is.
void as_errors(const std::function<void()>& act);

/// What is said where memory ran out in the middle of work; names the limit of the process if it has one.
std::string out_of_memory();

}  // namespace retort::base
