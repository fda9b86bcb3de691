#include "retort/architecture/counts.h"

#include <algorithm>
#include <map>
#include <utility>

namespace retort::architecture {
namespace {

std::int64_t attention_parameters(const Attention& attention, std::int64_t hidden_size) {
  return 2 * hidden_size * attention.head_dim * (attention.num_heads + attention.num_kv_heads);
}

// Matrices of the MLP; `used` counts of experts only those that one token uses.
std::int64_t mlp_parameters(const Mlp& mlp, std::int64_t hidden_size, bool used) {
  if (const auto* dense = std::get_if<DenseMlp>(&mlp)) return 3 * hidden_size * dense->width;
  const auto* experts = std::get_if<ExpertsMlp>(&mlp);
  if (experts == nullptr) return 0;
  const std::int64_t count = used ? experts->experts_per_token : experts->num_experts;
  const std::int64_t router = experts->num_experts * hidden_size;
  return count * 3 * hidden_size * experts->width + router;
}

std::int64_t matrices(const Block& block, std::int64_t hidden_size, bool used) {
  const std::int64_t attention = block.attention ? attention_parameters(*block.attention, hidden_size) : 0;
  return attention + mlp_parameters(block.mlp, hidden_size, used);
}

// Norms that a half of a block has over the hidden state.
std::int64_t hidden_norms(const Block& block) {
  return block.norms == NormPlacement::both ? 2 : 1;
}

// Norms and biases.
std::int64_t vectors_of_attention(const Block& block, std::int64_t hidden_size) {
  if (!block.attention) return 0;
  const Attention& attention = *block.attention;
  const AttentionKind& kind = attention.kind;
  std::int64_t count = hidden_norms(block) * hidden_size;
  if (kind.query_key_value_bias)
    count += attention.head_dim * (attention.num_heads + 2 * attention.num_kv_heads);
  if (kind.output_bias) count += hidden_size;
  if (kind.norm == QueryKeyNorm::per_head) count += 2 * attention.head_dim;
  if (kind.norm == QueryKeyNorm::across_heads)
    count += attention.head_dim * (attention.num_heads + attention.num_kv_heads);
  return count;
}

std::int64_t vectors_of_mlp(const Block& block, std::int64_t hidden_size) {
  if (std::holds_alternative<std::monostate>(block.mlp)) return 0;
  std::int64_t count = hidden_norms(block) * hidden_size;
  if (const auto* dense = std::get_if<DenseMlp>(&block.mlp); dense && dense->bias)
    count += 2 * dense->width + hidden_size;
  return count;
}

// Tokens that one sees on average, in causal sequences of `context` tokens.
double seen_tokens(const AttentionKind& kind, std::int64_t context) {
  const auto all = static_cast<double>(context);
  if (!kind.window || *kind.window >= context) return all / 2;
  const auto window = static_cast<double>(*kind.window);
  return window * (1 - window / (2 * all));
}

}  // namespace

std::int64_t num_parameters(const Block& block, std::int64_t hidden_size) {
  const std::int64_t vectors = vectors_of_attention(block, hidden_size) + vectors_of_mlp(block, hidden_size);
  return matrices(block, hidden_size, false) + vectors;
}

std::int64_t matrix_parameters(const Block& block, std::int64_t hidden_size) {
  return matrices(block, hidden_size, true);
}

std::int64_t matrix_parameters(const Config& config) {
  std::int64_t total = 0;
  for (const Block& block : config.blocks) total += matrix_parameters(block, config.hidden_size);
  return total;
}

std::int64_t num_parameters(const Config& config) {
  std::int64_t total = 0;
  for (const std::int64_t unit : parameters_per_unit(config)) total += unit;
  return total;
}

std::vector<std::int64_t> parameters_per_unit(const Config& config) {
  const std::int64_t embedding = config.vocab_size * config.hidden_size;
  std::vector<std::int64_t> counts{embedding};
  for (const Block& block : config.blocks) counts.push_back(num_parameters(block, config.hidden_size));
  if (config.tie_word_embeddings)
    counts.front() += config.hidden_size;
  else
    counts.push_back(embedding + config.hidden_size);
  return counts;
}

double flops_per_token(const Config& config, std::int64_t context) {
  const auto matrix = config.vocab_size * config.hidden_size + matrix_parameters(config);
  return 2 * static_cast<double>(matrix) + attention_flops_per_token(config, context);
}

double attention_flops_per_token(const Config& config, std::int64_t context) {
  double products = 0;
  for (const Block& block : config.blocks)
    if (const auto& attention = block.attention)
      products += seen_tokens(attention->kind, context) *
                  static_cast<double>(attention->num_heads * attention->head_dim);
  return 4 * products;
}

double head_flops_per_token(const Config& config) {
  return 2 * static_cast<double>(config.vocab_size) * static_cast<double>(config.hidden_size);
}

std::int64_t kv_cache_bytes_per_token(const Config& config, std::int64_t item_bytes) {
  return kv_cache_bytes(config, item_bytes, 1);
}

std::int64_t kv_cache_bytes(const Config& config, std::int64_t item_bytes, std::int64_t context) {
  std::int64_t elements = 0;
  for (const Block& block : config.blocks)
    if (block.attention)
      elements += 2 * block.attention->num_kv_heads * block.attention->head_dim *
                  std::min(context, block.attention->kind.window.value_or(context));
  return elements * item_bytes;
}

std::int64_t rotary_values_per_token(const Config& config) {
  std::map<std::pair<std::size_t, std::int64_t>, double> tables;
  for (const Block& block : config.blocks)
    if (block.attention && block.attention->kind.rope) {
      const std::size_t rope = *block.attention->kind.rope;
      const std::int64_t head_dim = block.attention->head_dim;
      tables[{rope, head_dim}] = static_cast<double>(head_dim) * config.ropes[rope].rotated_share;
    }
  std::int64_t values = 0;
  for (const auto& [table, width] : tables) values += static_cast<std::int64_t>(width);
  return values;
}

Cost cost_of(const Config& config, std::int64_t context, std::int64_t batch, std::int64_t item_bytes) {
  Cost cost{.parameters = num_parameters(config), .flops = flops_per_token(config, context)};
  cost.active_parameters = cost.parameters;
  for (const Block& block : config.blocks)
    cost.active_parameters -=
        matrices(block, config.hidden_size, false) - matrices(block, config.hidden_size, true);
  cost.bytes = cost.parameters * item_bytes + batch * kv_cache_bytes(config, item_bytes, context);
  return cost;
}

}  // namespace retort::architecture
