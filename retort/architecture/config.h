#pragma once
// The decoder as data.  Each block says for itself what it holds, so that blocks of different shapes and
// expert blocks need no other description.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace retort::architecture {

/// How a rotary embedding turns queries and keys, in the terms of transformers' rope_parameters.
struct Rope {
  enum class Kind { plain, linear, dynamic, llama3, yarn, longrope };

  Kind kind = Kind::plain;
  double theta = 10000.0;
  double rotated_share = 1.0;         ///< of a head's channels, the first ones
  double factor = 1.0;                ///< all kinds but plain
  std::int64_t original_context = 0;  ///< tokens; llama3, yarn, longrope, and where queries grow
  double low_frequency_factor = 1.0, high_frequency_factor = 4.0;  ///< llama3
  double beta_fast = 32.0, beta_slow = 1.0;                        ///< yarn
  bool truncate = true;                                            ///< yarn: whole channels bound its ramp
  std::optional<double> attention_factor;        ///< yarn, longrope: of cos and sin; nothing: by the factor
  std::optional<double> mscale, mscale_all_dim;  ///< yarn
  std::vector<double> short_factors, long_factors;  ///< longrope
  bool starts_anew = false;  ///< longrope: a text that outgrows original_context is turned anew as a whole
  double query_growth = 0;   ///< beta: queries grow by 1 + beta ln(1 + floor(position / original_context))
  bool operator==(const Rope&) const = default;
};

/// Whether queries and keys pass an RMSNorm before they are turned.
enum class QueryKeyNorm { none, per_head, across_heads };

/// What an attention computes, whatever its size.
struct AttentionKind {
  bool query_key_value_bias = false;
  bool output_bias = false;
  QueryKeyNorm norm = QueryKeyNorm::none;
  std::optional<std::int64_t>
      window;  ///< tokens that a token sees, itself among them; nothing: all before it
  std::optional<std::size_t> rope = 0;  ///< which of Config::ropes; nothing: positions are not told
  std::optional<double> scale;          ///< of the scores; nothing: 1 / sqrt(head_dim)
  double softcap = 0;                   ///< of the scores; 0: none
  bool operator==(const AttentionKind&) const = default;
};

/// Grouped-query attention: num_heads query heads share num_kv_heads key and value heads.
struct Attention {
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  AttentionKind kind = {};
  bool operator==(const Attention&) const = default;
};

enum class Activation { silu, gelu_tanh };

/// down(activation(gate(x)) * up(x)) with `width` channels.
struct DenseMlp {
  std::int64_t width = 0;
  Activation activation = Activation::silu;
  bool bias = false;
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

/// Where a block's halves are normalised: what they read, what they add to the hidden state, or both.
enum class NormPlacement { before, after, both };

struct Block {
  std::optional<Attention> attention;
  Mlp mlp;
  NormPlacement norms = NormPlacement::before;
  double residual_factor = 1.0;  ///< of what attention and MLP add to the hidden state
  bool operator==(const Block&) const = default;

  bool norms_before() const { return norms != NormPlacement::after; }
  bool norms_after() const { return norms != NormPlacement::before; }
};

/// Of the same size, whatever they compute.
bool same_size(const Block& a, const Block& b);

/// Width of a dense MLP, 0 without one.
std::int64_t mlp_width(const Block& block);
/// Number of KV groups, a key and value head with its query heads; 0 without attention.
std::int64_t kv_groups(const Block& block);

/// More blocks than this are taken for a damaged configuration.
inline constexpr std::int64_t kMaxBlocks = 8192;

struct Config {
  std::string architecture = "LlamaForCausalLM";  ///< one of families.h
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t max_position_embeddings = 0;
  double rms_norm_eps = 1e-6;
  std::vector<Rope> ropes{Rope{}};  ///< what blocks refer to
  double embedding_factor = 1.0;    ///< of the embedding's rows
  double logits_factor = 1.0;
  double logits_softcap = 0;  ///< logits become softcap * tanh(logit / softcap); 0: they stay
  double initializer_range = 0.02;
  bool tie_word_embeddings = false;
  std::vector<std::int32_t> bos_token_ids;
  std::vector<std::int32_t> eos_token_ids;
  std::optional<std::int32_t> pad_token_id;
  std::vector<Block> blocks;

  /// All blocks have one size, with attention and a dense MLP.
  bool uniform() const;
  bool operator==(const Config&) const = default;
};

/// Checks ranges, divisibility and that no size overflows; throws ModelError, `where` names the source.
void validate(const Config& config, const std::string& where);

}  // namespace retort::architecture
