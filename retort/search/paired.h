#pragma once
// How sure a difference is that was measured piece by piece on the same text.

#include <cstddef>
#include <span>

namespace retort::search {

struct PairedDifference {
  double value = 0;  ///< the sum
  /// Standard error of the sum, were the pieces drawn at random; infinite below three pieces.
  double error = 0;
  /// Whether the sum is above 0 beyond chance: by Student's t with pieces - 1 degrees of freedom, one-sided,
  /// at 5 %, or because it is infinite.
  bool significant = false;
};

/// Of any number of pieces, in their unit.
PairedDifference paired_difference(std::span<const double> differences);

/// Probability that |T| stays below t with so many degrees of freedom.
/// Source: Abramowitz and Stegun, 26.7.3 and 26.7.4.
double student_t_probability(double t, std::size_t degrees);

}  // namespace retort::search
