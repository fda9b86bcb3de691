#pragma once
// How many times one thing's values are those of another, from runs that were made in pairs.  What disturbs a
// machine for a while meets both runs of a pair, so their ratio moves less than either.

#include <cstddef>
#include <optional>
#include <span>

namespace retort::bench {

/// The exact test goes through 2^pairs cases.
inline constexpr std::size_t kMostPairs = 20;
/// From fewer pairs no interval has a level of 95 %.
inline constexpr std::size_t kLeastPairs = 6;

struct PairedRatio {
  struct Interval {
    double low = 0, high = 0;
  };
  double ratio = 1;                       ///< geometric mean over pairs of value / baseline
  std::optional<Interval> interval = {};  ///< 95 %; empty from fewer than kLeastPairs
  double p = 1;                           ///< of a ratio of 1, two-sided
};

/// `values` and `baseline` are positive, one of each pair.  The logarithm of a pair's ratio has either sign
/// with the same chance where both things are equal: p is the share of all 2^pairs choices of signs whose
/// mean is as far from 0 as the one found.  The interval holds the ratios that this test does not reject; its
/// ends are means of subsets of the pairs.  Sources: Fisher 1935, "The Design of Experiments", section 21;
/// Hartigan 1969, "Using subsample values as typical values".
PairedRatio paired_ratio(std::span<const double> values, std::span<const double> baseline);

}  // namespace retort::bench
