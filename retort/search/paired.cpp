#include "retort/search/paired.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace retort::search {
namespace {

constexpr std::size_t kFewestPieces = 3;
constexpr double kLevel = 0.05;

}  // namespace

double student_t_probability(double t, std::size_t degrees) {
  const double angle = std::atan(t / std::sqrt(static_cast<double>(degrees)));
  const double sine = std::sin(angle), cosine = std::cos(angle);
  const bool odd = degrees % 2 == 1;
  double term = odd ? cosine : 1, sum = degrees == 1 ? 0 : term;
  for (std::size_t k = odd ? 2 : 1; k + 2 < degrees; k += 2) {
    const auto below = static_cast<double>(k), above = below + 1;
    term *= below / above * cosine * cosine;
    sum += term;
  }
  return odd ? 2 / std::numbers::pi * (angle + sine * sum) : sine * sum;
}

PairedDifference paired_difference(std::span<const double> differences) {
  PairedDifference result{std::accumulate(differences.begin(), differences.end(), 0.0),
                          std::numeric_limits<double>::infinity()};
  if (std::isinf(result.value)) result.significant = result.value > 0;  // no chance makes up for that
  if (differences.size() < kFewestPieces || !std::isfinite(result.value)) return result;
  const auto count = static_cast<double>(differences.size());
  double squares = 0;
  for (const double difference : differences)
    squares += (difference - result.value / count) * (difference - result.value / count);
  result.error = std::sqrt(count / (count - 1) * squares);
  if (result.value <= 0) return result;
  const double by_chance =
      (1 - student_t_probability(result.value / result.error, differences.size() - 1)) / 2;
  result.significant = by_chance < kLevel;
  return result;
}

}  // namespace retort::search
