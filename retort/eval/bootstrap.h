#pragma once
// How far a score could move with other documents: the bootstrap over documents.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "retort/base/json.h"
#include "retort/base/words.h"

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

/// Why there is no interval.
enum class NoInterval {
  few_documents,    ///< a group has fewer than kLeastDocuments with a denominator
  equal_documents,  ///< all say the same, which does not tell what others would say
  few_differ        ///< most do, so that a quantile is not finite
};
constexpr auto words_of(NoInterval) {
  return base::words<NoInterval::few_differ>("too few documents", "equal documents",
                                             "too few documents differ");
}

/// Bootstrap-t interval of sum(numerators) / sum(denominators), averaged over groups (sources) with equal
/// weights.  t of a resample is what it is away from the ratio over its own jackknife error.  Each end is as
/// many jackknife errors away as the farther of two says, the equal-tailed interval and the symmetric one:
/// where a few documents differ most, the symmetric one alone is too short on the side of those.  Quantiles
/// are interpolated linearly.  A resample draws from each group as many documents as it has, with
/// replacement.  The draws depend on the seed and the sizes of the groups alone, so models that are scored on
/// the same documents see the same resamples.  Documents without a denominator are left out.  Empty for a
/// reason, which goes to `why` where it is given.  Source: Efron and Tibshirani 1993, sections 12.5
/// (bootstrap-t), 11.5 (jackknife), 8.3 (several samples); Hall 1988, "On symmetric bootstrap confidence
/// intervals".
std::optional<Interval> bootstrap_interval(std::span<const std::vector<RatioTerm>> groups,
                                           const BootstrapOptions& options = {}, NoInterval* why = nullptr);

}  // namespace retort::eval
