#pragma once
// Counts the bytes of every CPU tensor, so that a plan can be compared with what was really allocated.

#include <cstdint>

namespace retort::ops {

/// Puts a counting allocator in front of libtorch's own; call once, before the first tensor.  Further calls do nothing.
void install_memory_meter();

/// Bytes of live CPU tensors, and their peak since the last reset; 0 before install_memory_meter().
std::int64_t live_tensor_bytes();
std::int64_t peak_tensor_bytes();
void reset_peak_tensor_bytes();

/// Peak resident memory of the process, bytes.
std::int64_t process_peak_bytes();

}  // namespace retort::ops
