#pragma once
// Independent tasks on all processors, for layers without torch.

#include <cstddef>
#include <functional>

namespace retort::base {

/// Processors that this process may run on, at least 1.
unsigned usable_processors();

/// Calls `task` with 0 to `count` - 1, from up to `threads` threads with the caller's.  Tasks begin in their
/// order.  Once a task throws no other begins; of several exceptions that of the first task is thrown.
void parallel_for(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& task);

}  // namespace retort::base
