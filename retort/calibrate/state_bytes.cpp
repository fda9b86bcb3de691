#include "retort/calibrate/state_bytes.h"

#include <algorithm>

namespace retort::calibrate {
namespace {

constexpr std::int64_t kLogitMatrices = 6;  // of rows x vocabulary: both models' logits and their differences

}  // namespace

std::int64_t bytes_of_states(const architecture::Config& config, std::int64_t item_bytes,
                             std::int64_t tokens) {
  return tokens * static_cast<std::int64_t>(config.blocks.size()) * config.hidden_size * item_bytes;
}

std::int64_t activation_bytes(const architecture::Config& config, std::int64_t item_bytes,
                              std::int64_t tokens) {
  std::int64_t most = 0;
  for (const auto& block : config.blocks) {
    const auto& heads = block.attention;
    const auto projected = heads ? (2 * heads->num_heads + 2 * heads->num_kv_heads) * heads->head_dim : 0;
    most = std::max({most, projected, 3 * mlp_width(block)});
  }
  return tokens * (most + 6 * config.hidden_size) * item_bytes;
}

std::int64_t logit_bytes(const architecture::Config& config, std::int64_t rows) {
  return kLogitMatrices * rows * config.vocab_size * 4;
}

}  // namespace retort::calibrate
