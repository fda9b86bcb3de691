#include "retort/prune/staged.h"

#include <algorithm>
#include <cstdint>
#include <map>

namespace retort::prune {
namespace {

architecture::Kept with_level(const ModelSpace& space, std::size_t unit, std::int32_t level) {
  auto state = space.space().whole();
  state[unit] = level;
  return space.candidate(state);
}

// The blocks that differ from the whole model.
std::vector<std::int64_t> touched(const architecture::Kept& candidate, const architecture::Kept& whole) {
  std::vector<std::int64_t> blocks;
  for (const auto& block : whole.blocks) {
    const auto* now = candidate.find(block.number);
    if (!now || now->channels != block.channels || now->kv_groups.empty() != block.kv_groups.empty())
      blocks.push_back(block.number);
  }
  return blocks;
}

// Whether a unit removes channels and nothing else, short of all of an MLP.
bool has_channels(const ModelSpace& space, std::size_t unit, const architecture::Kept& whole) {
  if (space.space().highest(unit) < 2) return false;
  auto candidate = with_level(space, unit, 1);
  if (candidate.blocks.size() != whole.blocks.size()) return false;
  for (std::size_t i = 0; i < whole.blocks.size(); ++i)
    candidate.blocks[i].channels = whole.blocks[i].channels;
  return candidate == whole;
}

// The highest level that removes inactive channels only.
std::int32_t inactive_level(const ModelSpace& space, std::size_t unit, const architecture::Kept& whole,
                            const std::vector<calibrate::BlockScores>& scores) {
  for (auto level = space.space().highest(unit); level > 0; --level) {
    const auto candidate = with_level(space, unit, level);
    const bool inactive = std::all_of(whole.blocks.begin(), whole.blocks.end(), [&](const auto& block) {
      const auto* kept = candidate.find(block.number);
      return kept && std::ssize(block.channels) - std::ssize(kept->channels) <=
                         scores[static_cast<std::size_t>(block.number)].inactive_channels;
    });
    if (inactive) return level;
  }
  return 0;
}

}  // namespace

search::StagedOptions staged_options(const ModelSpace& space, const architecture::Kept& whole,
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
