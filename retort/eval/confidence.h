#pragma once
// Whether a model is as often right as it is sure: top-1 probability against top-1 accuracy.

#include <array>
#include <cstddef>
#include <cstdint>

namespace retort::eval {

/// Targets sorted by the probability of the most likely token into 15 bins of equal width, (m / 15, (m + 1) /
/// 15].  Source: Guo et al. 2017, "On Calibration of Modern Neural Networks", section 2.
struct ConfidenceBins {
  static constexpr std::size_t kBins = 15;
  struct Bin {
    std::int64_t targets = 0, correct = 0;
    double confidence = 0;  ///< summed over targets
  };
  std::array<Bin, kBins> bins = {};

  /// A target whose most likely token has this probability, 0 to 1, and is the right one or not.
  void add(double confidence, bool correct);
  void add(const ConfidenceBins& other);

  /// Expected calibration error: mean over targets of |accuracy - mean confidence| of their bin; 0 without
  /// targets.
  double expected_calibration_error() const;
  /// Mean confidence minus accuracy, -1 to 1: positive when overconfident, negative when underconfident.
  double gap() const;
};

}  // namespace retort::eval
