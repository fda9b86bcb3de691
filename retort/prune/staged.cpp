#include "retort/prune/staged.h"

#include <algorithm>
#include <cstdint>
#include <map>

namespace retort::prune {
namespace {

compress::Candidate with_level(const ModelSpace& space, std::size_t unit, std::int32_t level) {
  auto state = space.space().whole();
  state[unit] = level;
  return space.candidate(state);
}

// The blocks that differ from the whole model.
std::vector<std::int64_t> touched(const compress::Candidate& candidate, const compress::Candidate& whole) {
  std::vector<std::int64_t> blocks;
  for (const auto block : whole.blocks) {
    const auto *now = candidate.find(block), *then = whole.find(block);
    if (!now || *now != *then || candidate.attends(block) != whole.attends(block)) blocks.push_back(block);
  }
  return blocks;
}

// Whether a unit removes channels and nothing else, short of all of an MLP.
bool has_channels(const ModelSpace& space, std::size_t unit, const compress::Candidate& whole) {
  if (space.space().highest(unit) < 2) return false;
  auto candidate = with_level(space, unit, 1);
  candidate.channels = whole.channels;
  return candidate == whole;
}

// The highest level that removes inactive channels only.
std::int32_t inactive_level(const ModelSpace& space, std::size_t unit, const compress::Candidate& whole,
                            const std::vector<calibrate::BlockScores>& scores) {
  for (auto level = space.space().highest(unit); level > 0; --level) {
    const auto candidate = with_level(space, unit, level);
    const bool inactive = std::all_of(whole.blocks.begin(), whole.blocks.end(), [&](std::int64_t block) {
      const auto* kept = candidate.find(block);
      return kept && std::ssize(*whole.find(block)) - std::ssize(*kept) <=
                         scores[static_cast<std::size_t>(block)].inactive_channels;
    });
    if (inactive) return level;
  }
  return 0;
}

}  // namespace

search::StagedOptions staged_options(const ModelSpace& space, const compress::Candidate& whole,
                                     const std::vector<calibrate::BlockScores>& scores) {
  search::StagedOptions options;
  options.start = space.space().whole();
  std::map<std::int64_t, std::vector<std::size_t>> blocks;
  for (std::size_t unit = 0; unit < space.space().units.size(); ++unit) {
    const auto changed = touched(with_level(space, unit, space.space().highest(unit)), whole);
    if (changed.size() == 1) blocks[changed.front()].push_back(unit);
    if (!has_channels(space, unit, whole)) continue;
    options.channels.push_back(unit);
    options.start[unit] = inactive_level(space, unit, whole, scores);
  }
  for (auto& [block, units] : blocks) options.blocks.push_back(std::move(units));
  return options;
}

}  // namespace retort::prune
