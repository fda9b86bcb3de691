#pragma once
// How far a score could move with other documents: the bootstrap over documents.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "retort/base/json.h"

namespace retort::eval {

/// What a document adds above and below the line of a ratio, for example nats and tokens.
struct RatioTerm {
  double numerator = 0;
  double denominator = 0;
};

struct Interval {
  double low = 0, high = 0;
};

/// [low, high], or null.
base::Json to_json(const std::optional<Interval>& interval);

/// Documents of each group below which there is no interval: from fewer its level cannot be kept.
inline constexpr std::size_t kLeastDocuments = 8;

struct BootstrapOptions {
  std::int64_t resamples = 2000;
  double level = 0.95;
  std::uint64_t seed = 1;
};

/// Symmetric bootstrap-t interval of sum(numerators) / sum(denominators), averaged over groups (sources) with
/// equal weights: the ratio plus and minus a quantile of |t| times its jackknife error.  t of a resample is
/// what it is away from the ratio over its own jackknife error; the quantile is interpolated linearly.  A
/// resample draws from each group as many documents as it has, with replacement.  The draws depend on the
/// seed and the sizes of the groups alone, so models that are scored on the same documents see the same
/// resamples.  Documents without a denominator are left out.  Empty when a group has fewer than
/// kLeastDocuments others, or when so few of them differ that the quantile is not finite. Source: Efron and
/// Tibshirani 1993, sections 12.5 (bootstrap-t), 11.5 (jackknife), 8.3 (several samples); Hall 1988, "On
/// symmetric bootstrap confidence intervals".
std::optional<Interval> bootstrap_interval(std::span<const std::vector<RatioTerm>> groups,
                                           const BootstrapOptions& options = {});

}  // namespace retort::eval
