#include "retort/search/paired.h"

#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace retort::search {
namespace {

constexpr std::size_t kFewestPieces = 3;
// 95 % quantiles of Student's t for 2 to 10 degrees of freedom.
constexpr std::array kQuantiles = {2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812};

// Beyond the table, the normal quantile and the first term of its expansion, within 0.01.
double quantile(std::size_t degrees) {
  const auto place = degrees - 2;
  return place < kQuantiles.size() ? kQuantiles[place] : 1.645 + 1.67 / static_cast<double>(degrees);
}

}  // namespace

PairedDifference paired_difference(std::span<const double> differences) {
  PairedDifference result{std::accumulate(differences.begin(), differences.end(), 0.0),
                          std::numeric_limits<double>::infinity()};
  if (differences.size() < kFewestPieces) return result;
  const auto count = static_cast<double>(differences.size());
  double squares = 0;
  for (const double difference : differences)
    squares += (difference - result.value / count) * (difference - result.value / count);
  result.error = std::sqrt(count / (count - 1) * squares);
  result.significant = result.value > quantile(differences.size() - 1) * result.error;
  return result;
}

}  // namespace retort::search
