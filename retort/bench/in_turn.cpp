#include "retort/bench/in_turn.h"

#include <algorithm>

#include "retort/bench/stopwatch.h"

namespace retort::bench {

void time_in_turn(std::span<Timed> works, const Effort& effort, c10::Device device,
                  const std::function<void(double share)>& done) {
  for (const auto& work : works) work.run();
  const Stopwatch all(device);
  for (std::int64_t round = 1; round <= effort.most_rounds; ++round) {
    for (auto& work : works) {
      const Stopwatch watch(device);
      work.run();
      work.seconds = std::min(work.seconds, watch.seconds());
    }
    const double share = std::max(static_cast<double>(round) / static_cast<double>(effort.most_rounds),
                                  all.seconds() / effort.seconds);
    const bool enough = round >= effort.least_rounds && share >= 1;
    if (done) done(enough ? 1 : std::min(share, 0.99));
    if (enough) return;
  }
}

}  // namespace retort::bench
