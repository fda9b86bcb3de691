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
/// Of all blocks.
std::int64_t matrix_parameters(const Config& config);

/// Floating-point operations of one forward pass, per token of causal sequences of `context` tokens:
/// 2 * (matrices of blocks + one head) + 2 * context * sum of attention widths, less where a window is
/// shorter.  Norms, biases, RoPE and softmax are left out.
double flops_per_token(const Config& config, std::int64_t context);
/// The part of it that queries, keys and values take: 4 * tokens seen on average * sum of attention widths.
double attention_flops_per_token(const Config& config, std::int64_t context);
/// The part of it that makes logits.
double head_flops_per_token(const Config& config);

/// Bytes of keys and values per token of context.
std::int64_t kv_cache_bytes_per_token(const Config& config, std::int64_t item_bytes);

/// Bytes of keys and values that the token after `context` others sees: of a layer with a window no more than
/// that.
std::int64_t kv_cache_bytes(const Config& config, std::int64_t item_bytes, std::int64_t context);

/// Values of all tables of rotary embeddings, per position.
std::int64_t rotary_values_per_token(const Config& config);

/// What a model costs to hold and to run, without running it.
struct Cost {
  std::int64_t parameters = 0;         ///< unique
  std::int64_t active_parameters = 0;  ///< those that a token uses: of experts only as many as it is sent to
  std::int64_t bytes = 0;  ///< weights, and keys and values of `batch` sequences of `context` tokens
  double flops = 0;        ///< of a forward pass, per token
};
/// `item_bytes` is that of a weight and of a key or value.
Cost cost_of(const Config& config, std::int64_t context, std::int64_t batch, std::int64_t item_bytes);

}  // namespace retort::architecture
