#include "retort/bench/paired_ratio.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "retort/base/error.h"

namespace retort::bench {
namespace {

constexpr double kTail = 0.025;  // at each end of the interval
// Sums of the same numbers in another order are equal.
constexpr double kRounding = 1e-12;

std::vector<double> log_ratios(std::span<const double> values, std::span<const double> baseline) {
  base::ensure(values.size() == baseline.size() && !values.empty() && values.size() <= kMostPairs,
               "runs come in pairs, of which there are some");
  std::vector<double> ratios;
  for (std::size_t pair = 0; pair < values.size(); ++pair) {
    base::ensure(values[pair] > 0 && baseline[pair] > 0, "what is compared by a ratio is positive");
    ratios.push_back(std::log(values[pair] / baseline[pair]));
  }
  return ratios;
}

// Of every subset, by the bits of its index.
std::vector<double> subset_sums(const std::vector<double>& terms) {
  std::vector<double> sums(std::size_t{1} << terms.size());
  for (std::size_t subset = 1; subset < sums.size(); ++subset)
    sums[subset] = sums[subset & (subset - 1)] + terms[static_cast<std::size_t>(std::countr_zero(subset))];
  return sums;
}

// Signs are turned in one subset after the other.
double share_as_far(const std::vector<double>& sums, const std::vector<double>& terms) {
  double size = 0;
  for (const double term : terms) size += std::abs(term);
  const double total = sums.back(), least = std::abs(total) - kRounding * size;
  const auto as_far =
      std::ranges::count_if(sums, [&](double sum) { return std::abs(total - 2 * sum) >= least; });
  return static_cast<double>(as_far) / static_cast<double>(sums.size());
}

// A mean m is rejected from below where the subsets with a mean of at most m, and the empty one, are no more
// than the tail.
std::optional<PairedRatio::Interval> interval_of(std::vector<double> sums) {
  const auto rank = static_cast<std::ptrdiff_t>(kTail * static_cast<double>(sums.size()));
  if (rank < 1) return std::nullopt;
  for (std::size_t subset = 1; subset < sums.size(); ++subset) sums[subset] /= std::popcount(subset);
  const std::span means(sums.begin() + 1, sums.end());
  const auto low = means.begin() + rank - 1, high = means.end() - rank;
  std::ranges::nth_element(means, low);
  const double lowest = *low;
  std::ranges::nth_element(means, high);
  return PairedRatio::Interval{std::exp(lowest), std::exp(*high)};
}

}  // namespace

PairedRatio paired_ratio(std::span<const double> values, std::span<const double> baseline) {
  const auto terms = log_ratios(values, baseline);
  auto sums = subset_sums(terms);
  PairedRatio found;
  found.ratio = std::exp(sums.back() / static_cast<double>(terms.size()));
  found.p = share_as_far(sums, terms);
  found.interval = interval_of(std::move(sums));
  return found;
}

}  // namespace retort::bench
