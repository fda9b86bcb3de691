#include "retort/prune/part_scores.h"

#include <limits>

#include "retort/base/error.h"

namespace retort::prune {
namespace {

// At the places `numbers` of `count`, the others without hope; empty stays empty.
std::vector<double> spread(const std::vector<double>& scores, const std::vector<std::int64_t>& numbers,
                           std::int64_t count) {
  if (scores.empty()) return {};
  std::vector<double> placed(static_cast<std::size_t>(count), -std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < scores.size(); ++i) placed[static_cast<std::size_t>(numbers[i])] = scores[i];
  return placed;
}

}  // namespace

calibrate::UnitScores in_input(const calibrate::UnitScores& scores, const architecture::Config& input,
                               const architecture::Kept& candidate) {
  base::ensure(scores.channels.size() == candidate.blocks.size(), "scores for every kept block");
  calibrate::UnitScores placed;
  for (const auto kind : architecture::kPartKinds) {
    const auto place = [&](std::int64_t position, std::int64_t block) {
      scores_of(placed, kind, block) =
          spread(scores_of(scores, kind, position), architecture::numbers_of(candidate, kind, block),
                 architecture::count_of(input, kind, block));
    };
    if (architecture::half_of(kind))
      for (std::size_t i = 0; i < candidate.blocks.size(); ++i)
        place(static_cast<std::int64_t>(i), candidate.blocks[i].number);
    else
      place(0, 0);
  }
  return placed;
}

}  // namespace retort::prune
