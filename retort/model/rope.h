#pragma once
// The angles of a rotary embedding, as transformers computes them.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "retort/architecture/config.h"

namespace retort::model {

/// Angle per position of each pair of turned channels, float32, for a document of `length` tokens: embeddings
/// that stretch go by it, with the model's `context` as their measure.  Source: transformers 5.23.0,
/// modeling_rope_utils.
at::Tensor rope_frequencies(const architecture::Rope& rope, std::int64_t head_dim, std::int64_t context,
                            std::int64_t length);

/// Whether documents of two lengths are turned alike.
bool same_angles(const architecture::Rope& rope, std::int64_t context, std::int64_t length,
                 std::int64_t other);

/// Factors of queries by position, [N] float32; undefined where they do not grow.
at::Tensor query_factors(const architecture::Rope& rope, const at::Tensor& positions_N);

}  // namespace retort::model
