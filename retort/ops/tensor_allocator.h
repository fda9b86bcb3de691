#pragma once
// The allocator of CPU tensors: one for the whole process.  It keeps big blocks for reuse, so that the
// process needs little more than its tensors, and counts bytes, so that a plan can be compared with what was
// allocated.

#include <cstdint>

namespace retort::ops {

/// Puts our allocator in the place of libtorch's, for all tensors to come.  Call it before the first tensor;
/// further calls do nothing.
void install_tensor_allocator();

/// From now on no block waits for reuse where tensors and what waits would take more than so many bytes.
void limit_waiting_blocks(std::int64_t tensor_bytes);

/// Bytes of live CPU tensors, and their peak since the last reset; 0 before install_tensor_allocator().
std::int64_t live_tensor_bytes();
std::int64_t peak_tensor_bytes();
void reset_peak_tensor_bytes();

/// Counts memory that processes have in common among the tensors of this one: its share, or what it gives
/// back, below zero.
void count_common_bytes(std::int64_t bytes);

/// Bytes that big tensors ever asked of the system: where it stays, they take only what others gave back.
std::int64_t tensor_bytes_from_system();

/// The most since the last reset of big tensors with the blocks that wait for reuse.
std::int64_t peak_held_bytes();

/// Peak resident memory of the process, bytes.
std::int64_t process_peak_bytes();
/// What of it was there at the first install_tensor_allocator(): libraries and what they keep.  No plan of
/// tensors has it.  0 before.
std::int64_t process_base_bytes();
/// What the process has now beside tensors, and blocks that wait for reuse: libraries, text, tables.
std::int64_t bytes_beside_tensors();

}  // namespace retort::ops
