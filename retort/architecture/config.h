#pragma once
// The decoder as data.  Each block says for itself what it holds, so that blocks of different shapes and
// expert blocks need no other description.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace retort::architecture {

/// Grouped-query attention: num_heads query heads share num_kv_heads key and value heads.
struct Attention {
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  bool operator==(const Attention&) const = default;
};

/// down(silu(gate(x)) * up(x)) with `width` channels.
struct DenseMlp {
  std::int64_t width = 0;
  bool operator==(const DenseMlp&) const = default;
};

/// num_experts dense MLPs, of which each token uses experts_per_token.
struct ExpertsMlp {
  std::int64_t num_experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t width = 0;
  bool operator==(const ExpertsMlp&) const = default;
};

/// None, dense or experts.
using Mlp = std::variant<std::monostate, DenseMlp, ExpertsMlp>;

struct Block {
  std::optional<Attention> attention;
  Mlp mlp;
  bool operator==(const Block&) const = default;
};

/// Width of a dense MLP, 0 without one.
std::int64_t mlp_width(const Block& block);
/// Number of KV groups, a key and value head with its query heads; 0 without attention.
std::int64_t kv_groups(const Block& block);

/// More blocks than this are taken for a damaged configuration.
inline constexpr std::int64_t kMaxBlocks = 8192;

struct Config {
  std::string architecture = "LlamaForCausalLM";  ///< or "MistralForCausalLM"
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t max_position_embeddings = 0;
  double rms_norm_eps = 1e-6;
  double rope_theta = 10000.0;
  double initializer_range = 0.02;
  bool tie_word_embeddings = false;
  std::vector<std::int32_t> bos_token_ids;
  std::vector<std::int32_t> eos_token_ids;
  std::optional<std::int32_t> pad_token_id;
  std::vector<Block> blocks;

  /// All blocks are alike, with attention and a dense MLP: a stock Hugging Face configuration describes it.
  bool uniform() const;
  bool operator==(const Config&) const = default;
};

/// Checks ranges, divisibility and that no size overflows; throws ModelError, `where` names the source.
void validate(const Config& config, const std::string& where);

}  // namespace retort::architecture
