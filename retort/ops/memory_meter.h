#pragma once
// Counts the bytes of every CPU tensor, so that a plan can be compared with what was really allocated, and
// keeps big blocks for reuse, so that the process needs little more than its tensors.

#include <cstdint>

namespace retort::ops {

/// Puts an allocator of ours in the place of libtorch's; call once, before the first tensor.  Further calls
/// do nothing.
void install_memory_meter();

/// Bytes of live CPU tensors, and their peak since the last reset; 0 before install_memory_meter().
std::int64_t live_tensor_bytes();
std::int64_t peak_tensor_bytes();
void reset_peak_tensor_bytes();

/// Peak resident memory of the process, bytes.
std::int64_t process_peak_bytes();

}  // namespace retort::ops
