#include "retort/eval/bootstrap.h"

#include <algorithm>
#include <cmath>

#include "retort/base/random.h"

namespace retort::eval {
namespace {

using Terms = std::vector<RatioTerm>;

// The documents that count, or nothing when a group has too few to draw from.
std::vector<Terms> usable(std::span<const Terms> groups) {
  std::vector<Terms> kept;
  for (const auto& group : groups) {
    Terms& terms = kept.emplace_back(group);
    std::erase_if(terms, [](const RatioTerm& term) { return !(term.denominator > 0); });
    if (terms.size() < 2) return {};
  }
  return kept;
}

double resampled_ratio(const Terms& terms, base::Random& random) {
  RatioTerm sum;
  for (std::size_t draw = 0; draw < terms.size(); ++draw) {
    const auto& term = terms[random.next_below(terms.size())];
    sum.numerator += term.numerator;
    sum.denominator += term.denominator;
  }
  return sum.numerator / sum.denominator;
}

double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

}  // namespace

std::optional<Interval> bootstrap_interval(std::span<const Terms> groups, const BootstrapOptions& options) {
  const auto drawn_from = usable(groups);
  if (drawn_from.empty()) return std::nullopt;
  base::Random random(options.seed, base::stream_of("bootstrap over documents"));
  std::vector<double> means(static_cast<std::size_t>(options.resamples));
  for (double& mean : means) {
    for (const auto& terms : drawn_from) mean += resampled_ratio(terms, random);
    mean /= static_cast<double>(drawn_from.size());
  }
  std::sort(means.begin(), means.end());
  return Interval{quantile(means, (1 - options.level) / 2), quantile(means, (1 + options.level) / 2)};
}

}  // namespace retort::eval
