#include "retort/architecture/config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

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

bool is_share(double value) {
  return value > 0 && value <= 1;
}

void check_rope(const Rope& rope, const std::string& where) {
  const auto positive = [&](double value, const char* what) {
    check_number(value, what, value > 0, "a number above 0", where);
  };
  positive(rope.theta, "rope_theta");
  positive(rope.factor, "the rotary embedding's factor");
  check_number(rope.rotated_share, "partial_rotary_factor", is_share(rope.rotated_share), "above 0 to 1",
               where);
  check_number(rope.query_growth, "llama_4_scaling_beta", rope.query_growth >= 0, "0 or more", where);
  for (const auto& factor : {rope.attention_factor, rope.mscale, rope.mscale_all_dim})
    check_number(factor.value_or(1), "a factor of the rotary embedding",
                 factor.value_or(1) >= 0 && factor.value_or(1) < 1e4, "0 to below 10000", where);
  require<ModelError>(rope.kind != Rope::Kind::longrope || rope.original_context > 1, where,
                      ": original_max_position_embeddings is ", rope.original_context,
                      ", expected more than 1 for longrope.");
  const bool bounded = rope.kind == Rope::Kind::llama3 || rope.kind == Rope::Kind::yarn ||
                       rope.kind == Rope::Kind::longrope || rope.query_growth > 0;
  if (bounded) check_range(rope.original_context, "original_max_position_embeddings", kMaxPositions, where);
  if (rope.kind == Rope::Kind::llama3)
    check_number(rope.low_frequency_factor, "low_freq_factor",
                 rope.low_frequency_factor > 0 && rope.low_frequency_factor < rope.high_frequency_factor,
                 "above 0 and below high_freq_factor", where);
  if (rope.kind != Rope::Kind::yarn) return;
  positive(rope.beta_fast, "beta_fast");
  positive(rope.beta_slow, "beta_slow");
  check_number(rope.theta, "rope_theta", rope.theta > 1, "a number above 1 for yarn", where);
}

// Of a rotary embedding that attends with heads of this width.
void check_turned(const Rope& rope, std::int64_t head_dim, const std::string& where) {
  const auto turned = static_cast<std::int64_t>(static_cast<double>(head_dim) * rope.rotated_share);
  require<ModelError>(turned >= 2 && turned % 2 == 0, where, ": head_dim ", head_dim,
                      " and partial_rotary_factor ", rope.rotated_share, " turn ", turned,
                      " channels, expected an even number, as rotary positions turn pairs of channels.");
  require<ModelError>(rope.kind != Rope::Kind::dynamic || turned > 2, where,
                      ": a dynamic rotary embedding turns ", turned,
                      " channels of a head, expected at least 4.");
  if (rope.kind != Rope::Kind::longrope) return;
  for (const auto* factors : {&rope.short_factors, &rope.long_factors}) {
    require<ModelError>(std::ssize(*factors) == turned / 2, where, ": short_factor and long_factor have ",
                        rope.short_factors.size(), " and ", rope.long_factors.size(), " numbers, expected ",
                        turned / 2, ", one for each pair of turned channels.");
    for (const double factor : *factors)
      check_number(factor, "a number of short_factor or long_factor", factor > 0, "a number above 0", where);
  }
}

void check_kind(const Attention& attention, const Config& config, const std::string& where) {
  const auto& kind = attention.kind;
  if (kind.window) check_range(*kind.window, "sliding_window", kMaxPositions, where);
  if (kind.scale)
    check_number(*kind.scale, "the factor of attention scores", *kind.scale > 0, "above 0", where);
  check_number(kind.softcap, "attn_logit_softcapping", kind.softcap >= 0, "0 or more", where);
  if (!kind.rope) return;
  base::ensure(*kind.rope < config.ropes.size(), "a block's rotary embedding exists");
  check_turned(config.ropes[*kind.rope], attention.head_dim, where);
}

void check_attention(const Attention& attention, const std::string& where) {
  check_range(attention.num_heads, "num_attention_heads", kMaxHeads, where);
  check_range(attention.num_kv_heads, "num_key_value_heads", kMaxHeads, where);
  check_range(attention.head_dim, "head_dim", kMaxHeadDim, where);
  require<ModelError>(attention.num_heads % attention.num_kv_heads == 0, where, ": num_key_value_heads is ",
                      attention.num_kv_heads, ", expected a divisor of num_attention_heads ",
                      attention.num_heads, ".");
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

bool same_size(const Block& a, const Block& b) {
  const auto sizes = [](const Block& block) {
    const auto attention = block.attention.value_or(Attention{});
    const auto* experts = std::get_if<ExpertsMlp>(&block.mlp);
    return std::tuple(attention.num_heads, attention.num_kv_heads, attention.head_dim, mlp_width(block),
                      experts ? *experts : ExpertsMlp{});
  };
  return sizes(a) == sizes(b);
}

bool Config::uniform() const {
  const auto stock = [this](const Block& block) {
    return same_size(block, blocks.front()) && block.attention && std::holds_alternative<DenseMlp>(block.mlp);
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
  for (const Rope& rope : config.ropes) check_rope(rope, where);
  check_number(config.embedding_factor, "embedding_multiplier", config.embedding_factor > 0, "above 0",
               where);
  check_number(config.logits_factor, "the factor of logits", config.logits_factor > 0, "above 0", where);
  check_number(config.logits_softcap, "final_logit_softcapping", config.logits_softcap >= 0, "0 or more",
               where);
  check_number(config.initializer_range, "initializer_range",
               config.initializer_range >= 0 && config.initializer_range <= 1, "0 to 1", where);
  for (const Block& block : config.blocks) {
    if (block.attention) {
      check_attention(*block.attention, where);
      check_kind(*block.attention, config, where);
    }
    check_number(block.residual_factor, "residual_multiplier", block.residual_factor > 0, "above 0", where);
    check_mlp(block.mlp, where);
  }
  check_tokens(config, where);
  check_total(config, where);
}

}  // namespace retort::architecture
