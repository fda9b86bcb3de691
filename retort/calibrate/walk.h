#pragma once
// Calibration text on its way through the blocks of a model: all of it is taken from one block to the next.
// Between two blocks it is hidden states, in memory or, where there is not enough, in a file.
//
// Shape legend: N tokens of a batch, D hidden, C inputs of a linear layer.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "retort/base/files.h"
#include "retort/calibrate/text.h"
#include "retort/model/forward.h"
#include "retort/model/stored_tensors.h"

namespace retort::calibrate {

class Walk {
 public:
  /// What is asked of a batch on its way through a block.
  using Tap = std::function<void(std::size_t batch, model::Tap tap, const at::Tensor& x_NC)>;

  /// Embeds every batch: the walk stands before block 0.  Model and batches must outlive it; weights of
  /// blocks ahead may change.  Hidden states go to a file in `scratch`, which has no name; empty: to memory.
  /// Throws StorageError.
  Walk(const model::Weights& weights, const std::vector<Batch>& batches, const base::Path& scratch = {});

  /// The block that the walk stands before.
  std::int64_t block() const { return block_; }
  const model::Weights& weights() const { return weights_; }
  const std::vector<Batch>& batches() const { return batches_; }
  /// The input of that block; behind the last one, its output.
  at::Tensor hidden_ND(std::size_t batch) const { return hidden_.get(batch); }

  /// The inputs of the block's linear layers in a batch, without going on.
  void look(std::size_t batch, const Tap& tap) const;
  /// Takes all text through the block.  Throws ValidationError naming the block when its output is not
  /// finite, StorageError.
  void advance(const Tap& tap = {});

  /// The same by halves of the block and by batches, for whoever changes layers of a half before the text
  /// goes through it.  The input of the half's first layers, which the block must have.
  at::Tensor half_input_ND(std::size_t batch, model::Half half) const;
  /// The input of its last layer; undefined where the block lacks the half.
  at::Tensor half_inner_NC(std::size_t batch, model::Half half) const;
  /// Takes a batch through that layer and so through the half.  Throws as advance() does.
  void finish_half(std::size_t batch, model::Half half, const at::Tensor& inner_NC);
  /// Once all batches are through both halves.
  void next_block() { ++block_; }

 private:
  at::Tensor output(std::size_t batch, const Tap& tap) const;

  const model::Weights& weights_;
  const std::vector<Batch>& batches_;
  model::StoredTensors hidden_;
  std::int64_t block_ = 0;
};

/// Batches that pass a block before the next one, where they do not all: of an offloaded model several, for
/// which the block is copied once.
std::size_t batches_together(const model::Weights& weights);

/// Takes batches through the blocks from `first` on: from `input` of each, which is that of this block, to
/// `use` of its output, in their order.
void pass_blocks(const model::Weights& weights, const std::vector<Batch>& batches, std::int64_t first,
                 const std::function<at::Tensor(std::size_t batch)>& input,
                 const std::function<void(std::size_t batch, const at::Tensor& output_ND)>& use);

/// Throws ValidationError unless every value is finite; `block`: whose output it is, -1: the embedding.
void require_finite(const at::Tensor& hidden_ND, std::int64_t block);

}  // namespace retort::calibrate
