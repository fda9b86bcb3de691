#include "retort/calibrate/state_bytes.h"

#include <algorithm>

#include "retort/architecture/counts.h"
#include "retort/architecture/layout.h"
#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/calibrate/top_k_reference.h"

namespace retort::calibrate {
namespace {

// Of rows x vocabulary: both models' logits and their differences.  The loops of a CPU hold the first two.
constexpr std::int64_t kLogitMatricesOnDevice = 6;

}  // namespace

std::int64_t weight_bytes(const architecture::Config& config, std::int64_t item_bytes, OnDevice what) {
  if (what == OnDevice::all) return architecture::num_parameters(config) * item_bytes;
  const auto layout = architecture::make_layout(config);
  std::int64_t largest = 0;
  for (const auto& unit : layout.units)
    if (unit.kind == architecture::Unit::Kind::block) largest = std::max(largest, unit.size);
  const auto head = layout.units[static_cast<std::size_t>(layout.head_unit())].size;
  return (largest + (what == OnDevice::block_and_head ? head : 0)) * item_bytes;
}

shard::MemoryItem planned_weights(std::string_view name, const architecture::Config& config,
                                  std::int64_t item_bytes, OnDevice what) {
  const auto bytes = weight_bytes(config, item_bytes, what);
  if (what == OnDevice::all) return {std::string(name), bytes};
  const auto all = static_cast<std::uint64_t>(weight_bytes(config, item_bytes, OnDevice::all));
  return {base::join(what == OnDevice::block ? "copy of a block" : "copies of a block and of the head", " (",
                     base::human_bytes(all), " lie in the machine's memory)"),
          bytes};
}

std::int64_t bytes_of_states(const architecture::Config& config, std::int64_t item_bytes,
                             std::int64_t tokens) {
  return tokens * static_cast<std::int64_t>(config.blocks.size()) * config.hidden_size * item_bytes;
}

std::int64_t bytes_together(const architecture::Config& config, std::int64_t item_bytes,
                            std::int64_t batch_tokens, std::int64_t tokens, bool offloaded) {
  const auto together = offloaded ? std::min(kOffloadedBatches * batch_tokens, tokens) : 0;
  return together * config.hidden_size * item_bytes;
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

std::int64_t logit_bytes(const architecture::Config& config, std::int64_t rows, ops::Path path) {
  if (path != ops::Path::cpu) return kLogitMatricesOnDevice * rows * config.vocab_size * 4;
  const auto top_k = 4 * std::min(kTopK, config.vocab_size);  // ids of 64 bits, and values twice
  return rows * 4 * (config.vocab_size + std::max(config.vocab_size, top_k) + 3 * config.hidden_size);
}

}  // namespace retort::calibrate
