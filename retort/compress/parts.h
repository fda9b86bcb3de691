#pragma once
// The parts that a model may lose, besides whole blocks.  A part is one file in parts/; search, slicing,
// masks and compensation loop over them.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "retort/architecture/kept.h"
#include "retort/architecture/layout.h"
#include "retort/calibrate/influence.h"
#include "retort/calibrate/ranking.h"
#include "retort/model/block.h"

namespace retort::compress {

struct Part {
  const char* action;         ///< name in reports of narrowing every block alike: "narrow"
  const char* in_block;       ///< name of a block's own: "MLP"; null: the part is of the whole model
  const char* in_all_blocks;  ///< name of those of all blocks alike: "width"
  std::string (*described)(std::int64_t left);  ///< such a step: "narrow MLPs to 448"

  /// Counts how many the model has, or the block where the part is of blocks.
  std::int64_t (*count)(const architecture::Config& config, std::int64_t block);
  /// The numbers of those that stay, and what stays with other numbers.
  std::vector<std::int64_t> (*left)(const architecture::Kept& kept, std::int64_t block);
  architecture::Kept (*with)(const architecture::Kept& kept, std::int64_t block,
                             std::vector<std::int64_t> numbers);

  /// Scores of each: the higher, the later it goes.
  const std::vector<double>& (*scores)(const calibrate::UnitScores& scores, std::int64_t block);
  /// Influence of all of them together.
  double (*influence)(const calibrate::Influence& influence);

  /// Rows and columns of a tensor with this role that belong to each of them; 0: none.
  std::int64_t (*rows_each)(const architecture::Block& shape, architecture::Role role);
  std::int64_t (*columns_each)(const architecture::Block& shape, architecture::Role role);

  /// The layer that reads what they make, and what an evaluator changes of it; only of parts of blocks.
  architecture::Role reader;
  at::Tensor& (*reader_weight)(model::BlockWeights& weights);
  at::Tensor& (*mask)(model::BlockHooks& hooks);  ///< mask of the reader's inputs
  void (*skip)(model::BlockWeights& weights);     ///< makes a block compute without any of them

  bool of_blocks() const { return in_block != nullptr; }
};

extern const Part kKvGroups, kChannels, kHiddenFeatures;

/// All parts in the order in which a step is offered: KV groups, channels, hidden features.
std::span<const Part* const> parts();

/// How many inputs the part's reader has in a block of the input model.
std::int64_t inputs_of(const Part& part, const architecture::Config& input, std::int64_t block);

/// The inputs of the part's reader that a block of the input model keeps.
std::vector<std::int64_t> kept_inputs(const Part& part, const architecture::Config& input,
                                      const architecture::Kept& kept, std::int64_t block);

}  // namespace retort::compress
