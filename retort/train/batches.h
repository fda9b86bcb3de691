#pragma once
// Packed sequences as the engine's micro-batches.

#include <span>
#include <vector>

#include "retort/data/sequence.h"
#include "retort/shard/engine.h"
#include "retort/train/options.h"

namespace retort::train {

/// Sequences that are worth preparing ahead: those of two steps, but not more than 64 MiB of them.
std::int64_t prepared_sequences(const TrainOptions& options);

/// The sequences in groups of `per_batch`, the last may be smaller.
std::vector<shard::MicroBatch> make_micro_batches(std::span<const data::Sequence> sequences,
                                                  std::int64_t per_batch, at::Device device);

}  // namespace retort::train
