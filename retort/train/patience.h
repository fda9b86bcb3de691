#pragma once
// How long a step may keep others waiting before a rank is missed.

#include <algorithm>
#include <vector>

#include "retort/comm/watchdog.h"

namespace retort::train {

/// 30 s or five median steps, whichever is longer; ten minutes until three steps are known, because the first
/// ones are slow.  RETORT_PATIENCE_SECONDS replaces the 30 s, and twenty times as much the ten minutes.
class Patience {
 public:
  void add(double step_seconds) {
    if (std::ssize(seconds_) == kSteps) seconds_.erase(seconds_.begin());
    seconds_.push_back(step_seconds);
  }
  double seconds() const {
    if (seconds_.size() < 3) return 20 * comm::least_patience_seconds();
    auto sorted = seconds_;
    std::ranges::sort(sorted);
    return std::max(comm::least_patience_seconds(), 5 * sorted[sorted.size() / 2]);
  }

 private:
  static constexpr std::ptrdiff_t kSteps = 21;
  std::vector<double> seconds_;
};

}  // namespace retort::train
