#pragma once
// How much a channel of an MLP matters, from its statistics and the column of down_proj that reads it.
// A score is a function; another score is another function with this signature.
//
// Shape legend: D hidden, I width of the MLP.

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "retort/prune/options.h"
#include "retort/prune/statistics.h"

namespace retort::prune {

/// One float64 value per channel; the channels with the least go first.
using ChannelScore =
    std::function<at::Tensor(const ChannelStatistics& statistics, const at::Tensor& down_DI)>;

/// sum_i |W_down[i, c]| * ||a_c||_2: what the channel can move in the output.  Source: Wanda (Sun et al.
/// 2023), summed over the column.
at::Tensor wanda_score(const ChannelStatistics& statistics, const at::Tensor& down_DI);
/// Mean |a_c|.  Source: Minitron (Muralidharan et al. 2024), with one mean over all tokens.
at::Tensor activation_score(const ChannelStatistics& statistics, const at::Tensor& down_DI);

/// Variance of a_c times ||W_down[:, c]||^2: what a constant in the channel's place would not give.  Source:
/// FLAP (An et al. 2023), WIFV.
at::Tensor fluctuation_score(const ChannelStatistics& statistics, const at::Tensor& down_DI);

/// The function behind a recipe's name.
ChannelScore score_of(ChannelRanking ranking);

/// The score on the host.
std::vector<double> channel_scores(const ChannelScore& score, const ChannelStatistics& statistics,
                                   const at::Tensor& down_DI);

}  // namespace retort::prune
