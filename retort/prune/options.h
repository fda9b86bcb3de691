#pragma once
// What a recipe may say about pruning.

#include <algorithm>
#include <cstdint>
#include <string>

#include "retort/architecture/options.h"
#include "retort/base/words.h"
#include "retort/calibrate/options.h"
#include "retort/eval/options.h"

namespace retort::prune {

/// Exactly one of them is set.
struct Target {
  double parameters_fraction = 0;  ///< share of the model's unique saved parameters, in (0, 1)
  std::int64_t parameters = 0;     ///< absolute
  std::int64_t blocks = 0;         ///< how many stay; with Units::blocks
  eval::TimeTarget time = {};      ///< latency: of the model itself

  bool is_time() const { return time.is_given(); }
};

/// What a search may remove, and so which shapes the result may have.
enum class Units {
  uniform,     ///< blocks, and heads, channels and hidden features of all blocks alike: a stock configuration
               ///< describes the result
  blocks,      ///< blocks
  sub_blocks,  ///< attentions and MLPs, each on its own
  per_layer    ///< KV groups and MLP channels of each block on its own
};
constexpr auto words_of(Units) {
  return base::words<Units::per_layer>("uniform", "blocks", "sub_blocks", "per_layer");
}

enum class SearchMethod {
  greedy,
  tabu,
  evolution,
  random,
  additive,
  influence,
  staged  ///< inactive channels, blocks, channels, then Tabu search: the order of Dickmann et al. (2025)
};
constexpr auto words_of(SearchMethod) {
  return base::words<SearchMethod::staged>("greedy", "tabu", "evolution", "random", "additive", "influence",
                                           "staged");
}

/// The method where a recipe names none: what was best, or tied with the best for fewer tokens.  Source:
/// benchmarks/experiment, decision 29.
constexpr SearchMethod usual_method(Units units) {
  return units == Units::per_layer ? SearchMethod::additive
         : units == Units::uniform ? SearchMethod::greedy
                                   : SearchMethod::tabu;
}

struct SearchOptions {
  SearchMethod method = SearchMethod::additive;
  /// Tokens through the whole model; 0: no limit; below 0: as the units need, see plan.h.
  std::int64_t budget_tokens = -1;
  double tolerance = 0.005;  ///< how far below the target to end, as a share of the model
  bool after_compensation =
      true;                    ///< candidates are compared as compensation would leave them, where it is on
  std::int64_t finalists = 1;  ///< models at most that are kept where the text does not tell them apart
};

/// The finest multiple that is taken by default, see usual_width_multiple() in target.h.
inline constexpr std::int64_t kUsualWidthMultiple = 32;
/// Stands for what the model asks for, until the run has read it.
inline constexpr std::int64_t kWidthMultipleOfModel = 0;

struct PruneOptions {
  Target target;
  Units units = Units::per_layer;
  SearchOptions search;
  bool blocks = true;    ///< uniform: candidates that drop one block
  bool heads = true;     ///< uniform: candidates that drop one KV group of every attention
  bool channels = true;  ///< uniform: candidates that narrow every MLP by width_multiple channels
  bool hidden = false;   ///< uniform: candidates that narrow the hidden size by width_multiple features
  std::int64_t width_multiple = kUsualWidthMultiple;
  calibrate::ChannelRanking channel_ranking =
      calibrate::ChannelRanking::wanda;  ///< ranks channels and hidden features
  calibrate::ChannelRanking head_ranking = calibrate::ChannelRanking::obs;  ///< ranks KV groups
  double winsorise_quantile = 0.999;  ///< cuts |a| of each channel for the ranking; 1: nowhere
  bool compensate = true;  ///< fit o_proj and down_proj to what stays, where that helps on other documents
  calibrate::ObjectiveWeights objective;
  std::int64_t calibration_tokens = 0;  ///< sum over all sources; 0: as the model needs, see plan.h
  std::int64_t sequence_length = 512;
  std::uint64_t seed = 0;

  /// Whether a search may remove some of a part.
  constexpr bool removes(architecture::PartKind kind) const {
    switch (kind) {
      case architecture::PartKind::kv_groups:
        return heads;
      case architecture::PartKind::channels:
        return channels;
      case architecture::PartKind::hidden:
        return hidden;
    }
    return false;
  }
  /// Of how many each it is removed at a time.
  constexpr std::int64_t multiple_of(architecture::PartKind kind) const {
    return kind == architecture::PartKind::kv_groups ? 1 : width_multiple;
  }
  bool removes_parts_of(architecture::Half half) const {
    return std::ranges::any_of(architecture::kPartKinds, [&](auto kind) {
      return removes(kind) && architecture::half_of(kind) == half;
    });
  }
  bool removes_parts_of_blocks() const {
    return removes_parts_of(architecture::Half::attention) || removes_parts_of(architecture::Half::mlp);
  }
  /// Whether a search may remove some of any part.
  bool removes_parts() const {
    return std::ranges::any_of(architecture::kPartKinds, [this](auto kind) { return removes(kind); });
  }
  /// Whether a part of an attention may go.
  bool takes_heads() const {
    return removes_parts_of(architecture::Half::attention) &&
           (units == Units::uniform || units == Units::per_layer);
  }
  /// Whether layers may keep a part of their inputs, so that those are ranked and the layers fitted again.
  bool narrows() const { return removes_parts() && (units == Units::uniform || units == Units::per_layer); }
  /// Whether stepwise.h ranks again after each step, and ends at the target or below it.
  bool stepwise() const { return units == Units::uniform && search.method == SearchMethod::greedy; }
};

}  // namespace retort::prune
