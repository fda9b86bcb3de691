#pragma once
// By what heads, channels and hidden features are ranked among their like: the scores of the input columns of
// the layers that read them.

#include <vector>

#include "retort/model/weights.h"
#include "retort/prune/importance.h"
#include "retort/prune/options.h"
#include "retort/prune/statistics.h"

namespace retort::prune {

/// Higher stays longer.  Lists of blocks without statistics, or without the part, are empty.
struct UnitScores {
  std::vector<std::vector<double>> channels;  ///< [block][channel]: columns of down_proj
  std::vector<std::vector<double>> groups;    ///< [block][KV group]: sum of its columns of o_proj
  std::vector<double> hidden;                 ///< sum over the columns of all q, k, v, gate and up
};

UnitScores unit_scores(ChannelRanking ranking, const model::Weights& weights,
                       const std::vector<BlockStatistics>& statistics);

}  // namespace retort::prune
