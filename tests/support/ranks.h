#pragma once
// Ranks as threads of the test's own process.

#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "retort/base/error.h"
#include "retort/comm/shared/shared_group.h"

namespace retort::test {

/// Calls `act` as each of `size` ranks at the same time; what the first of them throws is thrown.  Without
/// `common_blocks` they are like ranks of several machines.
inline void on_ranks(int size, const std::function<void(comm::Group&)>& act, bool common_blocks) {
  const auto arena = comm::Arena::create();
  const auto control = arena->take(comm::control_bytes(size));
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        const auto group = comm::shared_group(
            {.arena = arena, .control = control, .rank = rank, .size = size, .common_blocks = common_blocks});
        act(*group);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
        arena->abort(std::string("rank ") + std::to_string(rank) + ": " + error.what());
      } catch (...) {  // what stands for the end of the machine
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
        arena->abort(std::string("rank ") + std::to_string(rank) + " is gone");
      }
    });
  for (auto& thread : threads) thread.join();
  // The others only say that one failed: its own error is the one to see.
  std::exception_ptr first;
  for (const auto& error : errors) {
    if (!error) continue;
    try {
      std::rethrow_exception(error);
    } catch (const base::PeerError&) {
      if (!first) first = error;
    } catch (...) {
      throw;
    }
  }
  if (first) std::rethrow_exception(first);
}

inline void on_ranks(int size, const std::function<void(comm::Group&)>& act) {
  on_ranks(size, act, true);
}

}  // namespace retort::test
