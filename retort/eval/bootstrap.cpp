#include "retort/eval/bootstrap.h"

#include <algorithm>
#include <cmath>

#include "retort/base/random.h"

namespace retort::eval {
namespace {

using Terms = std::vector<RatioTerm>;

// The documents that count, or nothing when a group has too few.
std::vector<Terms> usable(std::span<const Terms> groups) {
  std::vector<Terms> kept;
  for (const auto& group : groups) {
    Terms& terms = kept.emplace_back(group);
    std::erase_if(terms, [](const RatioTerm& term) { return !(term.denominator > 0); });
    if (terms.size() < kLeastDocuments) return {};
  }
  return kept;
}

struct Estimate {
  double value = 0, variance = 0;
};

// The ratio, and its variance by leaving out one document after the other.
Estimate ratio_of(const Terms& terms) {
  RatioTerm sum;
  for (const auto& term : terms) {
    sum.numerator += term.numerator;
    sum.denominator += term.denominator;
  }
  const auto count = static_cast<double>(terms.size());
  const double ratio = sum.numerator / sum.denominator;
  // Relative to the ratio of all, so that equal documents have no variance.
  double mean = 0, squares = 0;
  for (const auto& term : terms) {
    const double change = (ratio * term.denominator - term.numerator) / (sum.denominator - term.denominator);
    mean += change / count;
    squares += change * change;
  }
  return {ratio, (count - 1) / count * std::max(squares - count * mean * mean, 0.0)};
}

// Means over groups with equal weights.
Estimate mean_of(const std::vector<Terms>& groups) {
  Estimate mean;
  const auto count = static_cast<double>(groups.size());
  for (const auto& terms : groups) {
    const auto one = ratio_of(terms);
    mean.value += one.value / count;
    mean.variance += one.variance / (count * count);
  }
  return mean;
}

void resample(const Terms& terms, base::Random& random, Terms& drawn) {
  drawn.resize(terms.size());
  for (auto& term : drawn) term = terms[random.next_below(terms.size())];
}

double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto above = std::min(below + 1, sorted.size() - 1);
  const double beyond = place - static_cast<double>(below);
  // Some may be infinite.
  if (beyond == 0 || sorted[below] == sorted[above] || std::isinf(sorted[below])) return sorted[below];
  return std::lerp(sorted[below], sorted[above], beyond);
}

// How many of its own jackknife errors each resample is away, sorted.
std::vector<double> studentised(const std::vector<Terms>& documents, const Estimate& found,
                                const BootstrapOptions& options) {
  base::Random random(options.seed, base::stream_of("bootstrap over documents"));
  std::vector<double> t(static_cast<std::size_t>(options.resamples));
  auto drawn = documents;
  for (double& one : t) {
    for (std::size_t i = 0; i < documents.size(); ++i) resample(documents[i], random, drawn[i]);
    const auto other = mean_of(drawn);
    // Without any difference within it a resample is as far away as can be, unless it is not away at all.
    const double away = other.value - found.value;
    one = away != 0 ? away / std::sqrt(other.variance) : 0;
  }
  std::ranges::sort(t);
  return t;
}

}  // namespace

base::Json to_json(const std::optional<Interval>& interval) {
  return interval ? base::Json{interval->low, interval->high} : base::Json(nullptr);
}

std::optional<Interval> bootstrap_interval(std::span<const Terms> groups, const BootstrapOptions& options,
                                           NoInterval* why) {
  const auto none = [&](NoInterval reason) -> std::optional<Interval> {
    if (why) *why = reason;
    return std::nullopt;
  };
  const auto documents = usable(groups);
  if (documents.empty()) return none(NoInterval::few_documents);
  const auto found = mean_of(documents);
  // Beyond rounding the documents all say the same.
  if (found.variance <= 1e-24 * found.value * found.value) return none(NoInterval::equal_documents);
  const auto t = studentised(documents, found, options);
  std::vector<double> sizes(t.size());
  std::ranges::transform(t, sizes.begin(), [](double one) { return std::abs(one); });
  std::ranges::sort(sizes);
  const double tail = (1 - options.level) / 2, error = std::sqrt(found.variance);
  const double symmetric = quantile(sizes, options.level);
  const double below = error * std::max(symmetric, quantile(t, 1 - tail)),
               above = error * std::max(symmetric, -quantile(t, tail));
  if (!std::isfinite(below) || !std::isfinite(above)) return none(NoInterval::few_differ);
  return Interval{found.value - below, found.value + above};
}

}  // namespace retort::eval
