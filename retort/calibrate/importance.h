#pragma once
// How much a channel of an MLP matters, from its statistics and the column of down_proj that reads it; the
// same for KV groups, from the inputs of o_proj.  A score is a function; another score is another function
// with this signature.
//
// Multiplying a row of up_proj by s and dividing the column of down_proj by s changes no model.  It changes
// no score of wanda, fluctuation, taylor and obs; activation and minitron look at activations alone, so they
// do not claim that.
//
// Shape legend: D hidden, I width of the MLP, Y = H E inputs of o_proj.

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "retort/calibrate/input_statistics.h"
#include "retort/calibrate/options.h"
#include "retort/model/block.h"
#include "retort/model/weights.h"

namespace retort::calibrate {

/// sum_i W[i, c]^2, float64.
at::Tensor column_squares(const at::Tensor& weight_DI);

/// One float64 value per channel; the channels with the least go first.
using ChannelScore = std::function<at::Tensor(const InputStatistics& statistics, const at::Tensor& down_DI)>;

/// sum_i |W_down[i, c]| * ||a_c||_2: what the channel can move in the output.  Source: Wanda (Sun et al.
/// 2023), summed over the column.
at::Tensor wanda_score(const InputStatistics& statistics, const at::Tensor& down_DI);
/// Mean |a_c|.  Source: Minitron (Muralidharan et al. 2024), with one mean over all tokens.
at::Tensor activation_score(const InputStatistics& statistics, const at::Tensor& down_DI);

/// Variance of a_c times ||W_down[:, c]||^2: what a constant in the channel's place would not give.  Source:
/// FLAP (An et al. 2023), WIFV.
at::Tensor fluctuation_score(const InputStatistics& statistics, const at::Tensor& down_DI);

/// || mean over tokens of |a_c| ||_2 over sequences.  Source: Minitron (Muralidharan et al. 2024).
at::Tensor minitron_score(const InputStatistics& statistics, const at::Tensor& down_DI);

/// |sum over tokens of a_c * dL/da_c|, L the cross-entropy: the first-order change of the loss without the
/// channel.  Needs statistics.gradient_I.  Source: Molchanov et al. (2019); LLM-Pruner (Ma et al. 2023).
at::Tensor taylor_score(const InputStatistics& statistics, const at::Tensor& down_DI);

/// sum_i W_down[i, c]^2 / (2 [H^-1]_cc): the output error that is left when the other channels make up for
/// the missing one.  H is damped in proportion to its own diagonal.  Needs input_statistics.hessian.  Source:
/// ZipLM (Kurtic et al. 2023).
at::Tensor obs_score(const InputStatistics& statistics, const at::Tensor& down_DI);

/// The function behind a recipe's name.
ChannelScore score_of(ChannelRanking ranking);

/// The score on the host.
std::vector<double> channel_scores(const ChannelScore& score, const InputStatistics& statistics,
                                   const at::Tensor& down_DI);

/// One value per KV group of a block, its query heads together, from the statistics of o_proj's inputs.
/// wanda and activation: the sum over the group's columns; minitron: their norm; fluctuation: the mean of
/// their squares, as FLAP has it; taylor: |sum| of the signed products; obs: what removing all columns of the
/// group at once costs, 1/2 tr(W_S ([H^-1]_SS)^-1 W_S^T).  Empty for a block without attention.
std::vector<double> group_scores(ChannelRanking ranking, const model::BlockWeights& weights,
                                 const InputStatistics& output_input);

/// Scores of several layers on one scale: (score - mean) / standard deviation of each layer, infinite scores
/// left out and left as they are.  A layer whose scores are all equal gets 0.  Only for rankings over layers;
/// within a layer it changes no order.  Source: FLAP (An et al. 2023), section 3.
std::vector<std::vector<double>> standardised(const std::vector<std::vector<double>>& scores);

}  // namespace retort::calibrate
