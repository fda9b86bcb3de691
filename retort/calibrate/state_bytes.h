#pragma once
// The memory that text takes while it passes a model.

#include <cstdint>
#include <string_view>

#include "retort/architecture/config.h"
#include "retort/ops/path.h"
#include "retort/shard/memory_plan.h"

namespace retort::calibrate {

/// What lies on the device that computes of a model that text passes: its weights, or copies of those at
/// hand.
enum class OnDevice { all, block, block_and_head };
std::int64_t weight_bytes(const architecture::Config& config, std::int64_t item_bytes, OnDevice what);
/// The item of a plan for it, under `name` where all is there.
shard::MemoryItem planned_weights(std::string_view name, const architecture::Config& config,
                                  std::int64_t item_bytes, OnDevice what);

/// Bytes of the hidden states of `tokens` tokens between all blocks.
std::int64_t bytes_of_states(const architecture::Config& config, std::int64_t item_bytes,
                             std::int64_t tokens);

/// Batches that pass a block of an offloaded model together, at most, and the bytes of their hidden states
/// where they are of `batch_tokens` and all have `tokens`.
inline constexpr std::int64_t kOffloadedBatches = 16;
std::int64_t bytes_together(const architecture::Config& config, std::int64_t item_bytes,
                            std::int64_t batch_tokens, std::int64_t tokens, bool offloaded);

/// Bytes of what one block computes of a batch of `tokens` tokens.
std::int64_t activation_bytes(const architecture::Config& config, std::int64_t item_bytes,
                              std::int64_t tokens);

/// Bytes of comparing `rows` tokens by logits: those of two models, or of one beside kept distributions, with
/// the hidden states that they are made of; on accelerators also their log-softmaxes and differences.
std::int64_t logit_bytes(const architecture::Config& config, std::int64_t rows, ops::Path path);

}  // namespace retort::calibrate
