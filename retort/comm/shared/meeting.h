#pragma once
// A place in common memory where the ranks of a group meet: nobody goes on before all have come.

#include <atomic>
#include <cstdint>
#include <functional>

namespace retort::comm {

/// Lies in common memory, zero at first.
struct Meeting {
  std::atomic<std::uint32_t> arrived;
  std::atomic<std::uint32_t> round;
};

/// Comes to the meeting of `size` ranks and returns when all have come.  While it waits, it calls `look`
/// several times a second, which throws when nobody needs to wait any longer.
void meet(Meeting& meeting, int size, const std::function<void()>& look);

}  // namespace retort::comm
