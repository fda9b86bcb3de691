#include "retort/architecture/config.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"

namespace retort::architecture {
namespace {

using base::ModelError;
using base::require;

// Generous bounds: a configuration outside them is damaged or hostile.  They also keep every product below
// 2^63.
constexpr std::int64_t kMaxVocab = std::int64_t{1} << 26;
constexpr std::int64_t kMaxHidden = std::int64_t{1} << 18;
constexpr std::int64_t kMaxWidth = std::int64_t{1} << 22;
constexpr std::int64_t kMaxHeads = std::int64_t{1} << 13;
constexpr std::int64_t kMaxHeadDim = std::int64_t{1} << 13;
constexpr std::int64_t kMaxExperts = std::int64_t{1} << 13;
constexpr std::int64_t kMaxPositions = std::int64_t{1} << 31;
constexpr double kMaxParameters = 0x1p40;

void check_range(std::int64_t value, const char* what, std::int64_t most, const std::string& where) {
  require<ModelError>(value >= 1 && value <= most, where, ": ", what, " is ", value, ", expected 1 to ", most,
                      "; the configuration is damaged.");
}

void check_number(double value, const char* what, bool ok, const char* expected, const std::string& where) {
  require<ModelError>(std::isfinite(value) && ok, where, ": ", what, " is ", value, ", expected ", expected,
                      "; the configuration is damaged.");
}

void check_attention(const Attention& attention, const std::string& where) {
  check_range(attention.num_heads, "num_attention_heads", kMaxHeads, where);
  check_range(attention.num_kv_heads, "num_key_value_heads", kMaxHeads, where);
  check_range(attention.head_dim, "head_dim", kMaxHeadDim, where);
  require<ModelError>(attention.num_heads % attention.num_kv_heads == 0, where, ": num_key_value_heads is ",
                      attention.num_kv_heads, ", expected a divisor of num_attention_heads ",
                      attention.num_heads, ".");
  require<ModelError>(attention.head_dim % 2 == 0, where, ": head_dim is ", attention.head_dim,
                      ", expected an even number, as rotary positions turn pairs of channels.");
}

void check_mlp(const Mlp& mlp, const std::string& where) {
  if (const auto* dense = std::get_if<DenseMlp>(&mlp))
    check_range(dense->width, "intermediate_size", kMaxWidth, where);
  const auto* experts = std::get_if<ExpertsMlp>(&mlp);
  if (experts == nullptr) return;
  check_range(experts->num_experts, "num_experts", kMaxExperts, where);
  check_range(experts->experts_per_token, "experts_per_token", experts->num_experts, where);
  check_range(experts->width, "intermediate_size", kMaxWidth, where);
}

void check_token(std::int32_t id, const char* what, std::int64_t vocab_size, const std::string& where) {
  require<ModelError>(id >= 0 && id < vocab_size, where, ": ", what, " is ", id, ", expected 0 to ",
                      vocab_size - 1, ", the ids of the vocabulary.");
}

void check_tokens(const Config& config, const std::string& where) {
  for (const std::int32_t id : config.bos_token_ids)
    check_token(id, "bos_token_id", config.vocab_size, where);
  for (const std::int32_t id : config.eos_token_ids)
    check_token(id, "eos_token_id", config.vocab_size, where);
  if (config.pad_token_id) check_token(*config.pad_token_id, "pad_token_id", config.vocab_size, where);
}

// In doubles: the sum itself could be beyond 2^63.
void check_total(const Config& config, const std::string& where) {
  double total = 2.0 * static_cast<double>(config.vocab_size) * static_cast<double>(config.hidden_size);
  for (const Block& block : config.blocks)
    total += static_cast<double>(num_parameters(block, config.hidden_size));
  require<ModelError>(total <= kMaxParameters, where, ": describes ", total, " parameters, expected at most ",
                      kMaxParameters, "; the configuration is damaged.");
}

}  // namespace

std::int64_t mlp_width(const Block& block) {
  const auto* dense = std::get_if<DenseMlp>(&block.mlp);
  return dense ? dense->width : 0;
}

std::int64_t kv_groups(const Block& block) {
  return block.attention ? block.attention->num_kv_heads : 0;
}

bool Config::uniform() const {
  const auto stock = [this](const Block& block) {
    return block == blocks.front() && block.attention && std::holds_alternative<DenseMlp>(block.mlp);
  };
  return !blocks.empty() && std::all_of(blocks.begin(), blocks.end(), stock);
}

void validate(const Config& config, const std::string& where) {
  check_range(config.vocab_size, "vocab_size", kMaxVocab, where);
  check_range(config.hidden_size, "hidden_size", kMaxHidden, where);
  check_range(config.max_position_embeddings, "max_position_embeddings", kMaxPositions, where);
  check_range(static_cast<std::int64_t>(config.blocks.size()), "num_hidden_layers", kMaxBlocks, where);
  check_number(config.rms_norm_eps, "rms_norm_eps", config.rms_norm_eps >= 0 && config.rms_norm_eps < 1,
               "0 to below 1", where);
  check_number(config.rope_theta, "rope_theta", config.rope_theta > 0, "a number above 0", where);
  check_number(config.initializer_range, "initializer_range",
               config.initializer_range >= 0 && config.initializer_range <= 1, "0 to 1", where);
  for (const Block& block : config.blocks) {
    if (block.attention) check_attention(*block.attention, where);
    check_mlp(block.mlp, where);
  }
  check_tokens(config, where);
  check_total(config, where);
}

}  // namespace retort::architecture
