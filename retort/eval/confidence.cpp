#include "retort/eval/confidence.h"

#include <algorithm>
#include <cmath>

namespace retort::eval {
namespace {

// Mean of `excess(bin)`, which is a bin's sum of confidence minus its right answers, over all targets.
template <typename Excess>
double per_target(const std::array<ConfidenceBins::Bin, ConfidenceBins::kBins>& bins, Excess excess) {
  double sum = 0;
  std::int64_t targets = 0;
  for (const auto& bin : bins) {
    sum += excess(bin.confidence - static_cast<double>(bin.correct));
    targets += bin.targets;
  }
  return targets > 0 ? sum / static_cast<double>(targets) : 0;
}

}  // namespace

void ConfidenceBins::add(double confidence, bool correct) {
  // The first bin takes 0 as well, and what is no number: that is told from the loss.
  const double place = confidence > 0 ? std::ceil(confidence * static_cast<double>(kBins)) - 1 : 0;
  auto& bin = bins[static_cast<std::size_t>(std::min(place, static_cast<double>(kBins - 1)))];
  ++bin.targets;
  bin.correct += correct;
  bin.confidence += confidence;
}

void ConfidenceBins::add(const ConfidenceBins& other) {
  for (std::size_t i = 0; i < kBins; ++i) {
    bins[i].targets += other.bins[i].targets;
    bins[i].correct += other.bins[i].correct;
    bins[i].confidence += other.bins[i].confidence;
  }
}

double ConfidenceBins::expected_calibration_error() const {
  return per_target(bins, [](double excess) { return std::abs(excess); });
}

double ConfidenceBins::gap() const {
  return per_target(bins, [](double excess) { return excess; });
}

}  // namespace retort::eval
