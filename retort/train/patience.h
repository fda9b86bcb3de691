#pragma once
// How long a step may keep others waiting before a rank is missed.

#include <algorithm>
#include <cstdlib>
#include <vector>

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
    if (seconds_.size() < 3) return 20 * least();
    auto sorted = seconds_;
    std::ranges::sort(sorted);
    return std::max(least(), 5 * sorted[sorted.size() / 2]);
  }

 private:
  static constexpr std::ptrdiff_t kSteps = 21;
  static double least() {
    const char* text = std::getenv("RETORT_PATIENCE_SECONDS");
    return text ? std::atof(text) : 30;
  }
  std::vector<double> seconds_;
};

}  // namespace retort::train
