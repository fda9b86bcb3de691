#include "retort/prune/unit_scores.h"

#include <ATen/ATen.h>

#include "retort/prune/calibration.h"
#include "retort/prune/candidate.h"

namespace retort::prune {
namespace {

// Sums of as many neighbouring columns as make one group.
std::vector<double> sums_of(const std::vector<double>& columns, std::int64_t groups) {
  std::vector<double> sums(static_cast<std::size_t>(groups), 0);
  for (std::size_t i = 0; i < columns.size(); ++i) sums[i * sums.size() / columns.size()] += columns[i];
  return sums;
}

}  // namespace

UnitScores unit_scores(ChannelRanking ranking, const model::Weights& weights,
                       const std::vector<BlockStatistics>& statistics) {
  const auto score = score_of(ranking);
  UnitScores scores{.channels = std::vector<std::vector<double>>(statistics.size()),
                    .groups = std::vector<std::vector<double>>(statistics.size()),
                    .hidden = std::vector<double>(static_cast<std::size_t>(weights.config.hidden_size), 0)};
  const auto add_hidden = [&](const ChannelStatistics& input, const at::Tensor& weight_MD) {
    const auto columns = channel_scores(score, input, weight_MD);
    for (std::size_t i = 0; i < columns.size(); ++i) scores.hidden[i] += columns[i];
  };
  for (std::size_t block = 0; block < statistics.size(); ++block) {
    const auto& inputs = statistics[block];
    const auto part = weights_of_block(weights, static_cast<std::int64_t>(block));
    if (inputs.output_input.tokens > 0) {
      const auto columns = channel_scores(score, inputs.output_input, part.output_DY);
      scores.groups[block] = sums_of(columns, kv_groups(part.shape));
      add_hidden(inputs.qkv_input, part.qkv_XD);
    }
    if (inputs.down_input.tokens > 0) {
      scores.channels[block] = channel_scores(score, inputs.down_input, part.down_DI);
      add_hidden(inputs.gate_up_input, part.gate_up_2ID);
    }
  }
  return scores;
}

}  // namespace retort::prune
