#pragma once
// How far a score could move with other documents: the bootstrap over documents.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace retort::eval {

/// What a document adds above and below the line of a ratio, for example nats and tokens.
struct RatioTerm {
  double numerator = 0;
  double denominator = 0;
};

struct Interval {
  double low = 0, high = 0;
};

struct BootstrapOptions {
  std::int64_t resamples = 2000;
  double level = 0.95;
  std::uint64_t seed = 1;
};

/// Percentile interval of sum(numerators) / sum(denominators), averaged over groups (sources) with equal
/// weights. A resample draws from each group as many documents as it has, with replacement; quantiles are
/// interpolated linearly between resamples.  The draws depend on the seed and the sizes of the groups alone,
/// so models that are scored on the same documents see the same resamples.  Documents without a denominator
/// are left out; empty unless every group has at least two others.
/// Source: Efron and Tibshirani 1993, sections 13.3 (percentile interval) and 8.3 (several samples).
std::optional<Interval> bootstrap_interval(std::span<const std::vector<RatioTerm>> groups,
                                           const BootstrapOptions& options = {});

}  // namespace retort::eval
