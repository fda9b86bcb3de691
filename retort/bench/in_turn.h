#pragma once
// Works that are timed in turn, round after round, so that what else the machine does meets all of them.  The
// fastest run of each counts.

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <span>

namespace retort::bench {

struct Timed {
  std::function<void()> run;
  double seconds = std::numeric_limits<double>::infinity();  ///< of its fastest run
};

struct Effort {
  double seconds = 1;  ///< that all rounds may take together, about
  std::int64_t least_rounds = 3, most_rounds = 100;
};

/// Runs each once to allocate and to choose kernels, then times rounds of all.  `done` is called after every
/// round with the share of the effort that is spent, and may throw to end the work.
void time_in_turn(std::span<Timed> works, const Effort& effort, c10::Device device,
                  const std::function<void(double share)>& done = {});

}  // namespace retort::bench
