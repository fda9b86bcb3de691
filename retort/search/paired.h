#pragma once
// How sure a difference is that was measured piece by piece on the same text.

#include <span>

namespace retort::search {

struct PairedDifference {
  double value = 0;  ///< the sum
  /// Standard error of the sum, were the pieces drawn at random; infinite below three pieces.
  double error = 0;
  /// Whether the sum is above 0 beyond chance: by Student's t with pieces - 1 degrees of freedom, one-sided,
  /// at 5 %.
  bool significant = false;
};

PairedDifference paired_difference(std::span<const double> differences);

}  // namespace retort::search
