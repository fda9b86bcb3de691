#pragma once
// Threads for work of some microseconds, which is less than it takes to wake those of OpenMP.
//
// A thread that has helped watches for more work for a moment before it sleeps.  The caller never waits for a
// thread that has not begun: where other programs hold the processors, it does all of the work itself.

#include <c10/util/FunctionRef.h>

#include <cstdint>

namespace retort::kernels::cpu {

/// Calls body(begin, end) for ranges that make up 0..count, each of at least `least` (the last may be
/// shorter), on as many threads as libtorch uses.  Which thread takes which range varies, so each element has
/// to be computed alone.  Inside a parallel loop, and beside another call, all of it is one range.  `body`
/// does not throw.
void for_ranges(std::int64_t count, std::int64_t least,
                c10::function_ref<void(std::int64_t begin, std::int64_t end)> body);

}  // namespace retort::kernels::cpu
