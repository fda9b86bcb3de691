#pragma once
// Which channels and KV groups of a model go first: statistics of one block after the other on calibration
// text, then scores.  Never the Hessians of more than one block.
//
// Two rules come before any score.  Inactive channels, whose largest contribution |a_c| ||W_down[:, c]|| is
// at most 1e-6 of the block's largest, go first: their score is -infinity.  Massive channels, the 0.1 % of a
// block (at least one) with the largest contributions, go last: +infinity.  Contributions, not activations,
// because planted scales change the latter only.

#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "retort/architecture/kept.h"
#include "retort/calibrate/input_statistics.h"
#include "retort/calibrate/options.h"
#include "retort/calibrate/text.h"
#include "retort/model/block.h"
#include "retort/model/weights.h"
#include "retort/record/observer.h"

namespace retort::calibrate {

inline constexpr double kInactiveContribution = 1e-6;  ///< part of the block's largest
inline constexpr double kMassiveChannels = 0.001;      ///< part of a block's channels

struct RankingOptions {
  ChannelRanking ranking = ChannelRanking::wanda;
  double winsorise_quantile = 0.999;          ///< |a| of each channel is cut there; 1: nowhere
  bool hidden = false;                        ///< score hidden features too
  std::optional<ChannelRanking> groups = {};  ///< ranks KV groups; empty: as all others

  ChannelRanking at(model::Tap tap) const {
    return tap == model::Tap::output_input ? groups.value_or(ranking) : ranking;
  }
  bool uses(ChannelRanking one) const { return ranking == one || groups == one; }
};

/// Inputs of the linear layers of a block; without tokens where the block lacks the layer, or
/// nobody wants its scores.
struct BlockStatistics {
  std::array<InputStatistics, 4> taps = {};  ///< indexed by model::Tap

  InputStatistics& operator[](model::Tap tap) { return taps[static_cast<std::size_t>(tap)]; }
  const InputStatistics& operator[](model::Tap tap) const { return taps[static_cast<std::size_t>(tap)]; }
};
/// The taps in the order in which a block computes them.
inline constexpr std::array kTaps = {model::Tap::qkv_input, model::Tap::output_input,
                                     model::Tap::gate_up_input, model::Tap::down_input};
/// What reads a tap, q, k and v or gate and up as one matrix; undefined where the block lacks it.
at::Tensor reader_of(const model::BlockWeights& weights, model::Tap tap);

/// Whether a score marks an inactive channel.
inline bool is_inactive(double score) {
  return score == -std::numeric_limits<double>::infinity();
}

/// Scores of a block's parts: the higher, the later a part goes.  Empty where the block has none.
struct BlockScores {
  std::vector<double> channels, groups;
  std::vector<double> hidden;  ///< sum over the columns of q, k, v, gate and up
  std::int64_t inactive_channels = 0, massive_channels = 0;
};

/// Still without tokens: scales from the weights' columns; no products are collected.
BlockStatistics empty_statistics(const model::BlockWeights& weights);

/// Channels inactive and massive by the rules above, bool [I].
at::Tensor inactive_channels(const InputStatistics& down_input, const at::Tensor& down_DI);
at::Tensor massive_channels(const InputStatistics& down_input, const at::Tensor& down_DI);

BlockScores block_scores(const RankingOptions& options, const model::BlockWeights& weights,
                         const BlockStatistics& statistics);

/// One forward pass, block after block, and for taylor a forward and backward pass before it.  Tells
/// `observer`, if any, how many blocks are ranked.  Throws ValidationError naming the block whose activations
/// are not finite.
std::vector<BlockScores> measured_scores(const model::Weights& weights, const std::vector<Batch>& batches,
                                         const RankingOptions& options, record::Observer* observer = nullptr);

/// Scores of a model's parts.
struct UnitScores {
  std::vector<std::vector<double>> channels = {}, groups = {};  ///< [block]
  std::vector<double> hidden = {};  ///< sum over blocks; empty when it was not wanted
};
UnitScores unit_scores(const std::vector<BlockScores>& scores);
/// Those of a part, in a block where the part is of blocks.
std::vector<double>& scores_of(UnitScores& scores, architecture::PartKind kind, std::int64_t block);
const std::vector<double>& scores_of(const UnitScores& scores, architecture::PartKind kind,
                                     std::int64_t block);

}  // namespace retort::calibrate
