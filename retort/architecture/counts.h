#pragma once
// Parameters, arithmetic and cache of a decoder, from its configuration alone.

#include <cstdint>
#include <vector>

#include "retort/architecture/config.h"

namespace retort::architecture {

/// Unique parameters: a tied head counts once.
std::int64_t num_parameters(const Config& config);
/// Parameters of one block with its norms; all experts count.
std::int64_t num_parameters(const Block& block, std::int64_t hidden_size);
/// Unique parameters of each unit, in the order of Layout::units.
std::vector<std::int64_t> parameters_per_unit(const Config& config);

/// Parameters of one block's matrices that a token multiplies with (of experts, those it uses).
std::int64_t matrix_parameters(const Block& block, std::int64_t hidden_size);

/// Floating-point operations of one forward pass, per token of causal sequences of `context` tokens:
/// 2 * (matrices of blocks + one head) + 2 * context * sum of attention widths.  Norms, RoPE and softmax are
/// left out.
double flops_per_token(const Config& config, std::int64_t context);

/// Bytes of keys and values per token of context.
std::int64_t kv_cache_bytes_per_token(const Config& config, std::int64_t item_bytes);

}  // namespace retort::architecture
