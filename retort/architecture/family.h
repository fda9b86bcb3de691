#pragma once
// What a family of decoders is: its names, its keys of config.json, and how a decoder follows from them. Each
// is one table in families/; nothing else asks which family a model is of.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/architecture/layout.h"

namespace retort::architecture {

/// What config.json of any family can say, before it is spread over blocks.  Members have the names of the
/// keys.
struct Settings {
  std::int64_t vocab_size = 0, hidden_size = 0, num_hidden_layers = 0, max_position_embeddings = 0;
  std::int64_t num_attention_heads = 0, intermediate_size = 0;
  std::optional<std::int64_t> num_key_value_heads, head_dim;
  double rms_norm_eps = 0, initializer_range = 0;
  bool tie_word_embeddings = false;
  std::string hidden_act = "silu";
  std::vector<std::int32_t> bos_token_id, eos_token_id;
  std::optional<std::int64_t> pad_token_id;

  bool attention_bias = false, mlp_bias = false;
  std::optional<std::int64_t> sliding_window;
  bool use_sliding_window = true;
  std::int64_t max_window_layers = 0;       ///< those before it see everything
  std::int64_t sliding_window_pattern = 0;  ///< each so-manieth layer sees everything
  std::optional<std::vector<std::string>> layer_types;
  std::optional<std::vector<std::int64_t>> no_rope_layers;  ///< 0 where positions are not told
  std::int64_t no_rope_layer_interval = 0;
  double embedding_multiplier = 1, residual_multiplier = 1, logits_scaling = 1;
  std::optional<double> attention_multiplier;
  std::optional<std::int64_t> query_pre_attn_scalar;
  std::optional<double> attn_logit_softcapping, final_logit_softcapping;

  std::vector<Rope> ropes;  ///< of full attention; where a family tells them apart, of a window
};

/// A key of config.json.
struct Key {
  using Member =
      std::variant<bool Settings::*, std::int64_t Settings::*, double Settings::*, std::string Settings::*,
                   std::optional<std::int64_t> Settings::*, std::optional<double> Settings::*,
                   std::vector<std::int32_t> Settings::*, std::optional<std::vector<std::string>> Settings::*,
                   std::optional<std::vector<std::int64_t>> Settings::*>;
  const char* name;
  Member member;
  const char* absent;  ///< JSON of what an absent key means to transformers; null: it has to be there
  /// JSON of the value, or of each element of what is a list, that changes nothing in a family without this
  /// key.  "null": no value does.  Null: every value does, because such a family never looks at the key.
  const char* neutral = nullptr;
};

/// The name of a tensor, within its block or the model, that differs from that of most families.
struct TensorName {
  Role role;
  const char* name;
};

struct Family {
  const char* architecture;        ///< "LlamaForCausalLM"
  const char* model_type;          ///< "llama"
  const char* models;              ///< which models people know of it
  std::span<const Key> keys = {};  ///< beside those of all families, or with another value where absent

  bool query_key_value_bias = false;  ///< has biases of q, k and v that no key tells of
  QueryKeyNorm norm = QueryKeyNorm::none;
  NormPlacement norms = NormPlacement::before;
  double norm_weights_less = 0;             ///< 1: files hold w of norms by 1 + w
  bool embedding_times_root = false;        ///< embeddings are multiplied by the root of hidden_size
  bool heads_divide_hidden = false;         ///< transformers refuses another number of heads
  double rope_theta = 10000.0;              ///< where config.json has none
  const char* rope = nullptr;               ///< JSON of rope_parameters where config.json has none
  bool partial_rotary = false;              ///< honours partial_rotary_factor
  bool queries_grow = false;                ///< honours llama_4_scaling_beta
  bool yarn_is_longrope = false;            ///< the older names "su" and "yarn" mean longrope
  bool longrope_starts_anew = false;        ///< a text that outgrows the original context is computed anew
  bool longrope_by_hidden = false;          ///< transformers counts its factors by hidden_size / heads
  std::optional<double> window_theta = {};  ///< of layers with a window, whose rotary embedding is their own
  const char* window_theta_key = nullptr;   ///< in config.json, where it has one
  std::optional<std::int64_t> original_context =
      {};  ///< of scaled positions, before any other, where no key has it

  /// Whether a layer has the window, and whether its queries and keys are turned, where no list says so.  The
  /// former is asked when settings.no_rope_layers is there.
  bool (*windowed)(const Settings& settings, std::int64_t layer) = nullptr;
  bool (*turned)(const Settings& settings, std::int64_t layer) = nullptr;

  /// The class with which transformers builds a tokenizer whose files name none, or, where it is fixed, any.
  /// "TokenizersBackend" takes tokenizer.json as it is.
  const char* tokenizer_class = "TokenizersBackend";
  bool tokenizer_class_is_fixed = false;
  bool cuts_by_tekken = false;  ///< transformers warns where another expression cuts for a large vocabulary

  std::span<const TensorName> tensors = {};
  std::span<const TensorName> stored = {};         ///< under which several tensors lie in a file as one
  std::span<const std::string_view> ignored = {};  ///< keys that transformers ignores in this family
};

/// A model of more than text, whose config.json holds that of its language part as text_config.
struct Wrapper {
  const char* architecture;
  const char* model_type;
  const char* text_model_type;  ///< where text_config names none
};

/// The keys that all families have.
std::span<const Key> common_keys();
/// Those of a family: its own, and the common ones that it does not have for itself.
std::vector<Key> keys_of(const Family& family);

/// "self_attn.q_proj.weight": within its block, or the model.
std::string tensor_name(const Family& family, Role role);
/// What a file calls it.
std::string stored_name(const Family& family, Role role);

/// Whether both have the same tensors in files.
bool same_files(const Family& a, const Family& b);

/// The decoder that settings describe; `where` names the file.  Throws ModelError for what contradicts
/// itself.
Config config_of(const Family& family, const Settings& settings, const std::string& where);
/// Settings that describe a decoder, as far as the family has words for it; sizes are those of the first
/// block that has them.
Settings settings_of(const Family& family, const Config& config);

}  // namespace retort::architecture
