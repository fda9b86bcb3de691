#pragma once
// The memory that text takes while it passes a model.

#include <cstdint>

#include "retort/architecture/config.h"

namespace retort::calibrate {

/// Bytes of the hidden states of `tokens` tokens between all blocks.
std::int64_t bytes_of_states(const architecture::Config& config, std::int64_t item_bytes,
                             std::int64_t tokens);

/// Bytes of what one block computes of a batch of `tokens` tokens.
std::int64_t activation_bytes(const architecture::Config& config, std::int64_t item_bytes,
                              std::int64_t tokens);

/// Bytes of the logits of two models for `rows` tokens, and of their differences.
std::int64_t logit_bytes(const architecture::Config& config, std::int64_t rows);

}  // namespace retort::calibrate
