#include "retort/architecture/family.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "retort/base/error.h"
#include "retort/base/index.h"
#include "retort/io/quote.h"

namespace retort::architecture {
namespace {

using base::ModelError;
using base::require;
using base::to_size;

constexpr std::string_view kFull = "full_attention", kWindow = "sliding_attention";

constexpr std::array kCommon{
    Key{"vocab_size", &Settings::vocab_size, nullptr},
    Key{"hidden_size", &Settings::hidden_size, nullptr},
    Key{"num_hidden_layers", &Settings::num_hidden_layers, nullptr},
    Key{"max_position_embeddings", &Settings::max_position_embeddings, nullptr},
    Key{"num_attention_heads", &Settings::num_attention_heads, nullptr},
    Key{"intermediate_size", &Settings::intermediate_size, nullptr},
    Key{"num_key_value_heads", &Settings::num_key_value_heads, "null"},
    Key{"head_dim", &Settings::head_dim, "null"},
    Key{"rms_norm_eps", &Settings::rms_norm_eps, "1e-06"},
    Key{"initializer_range", &Settings::initializer_range, "0.02"},
    Key{"tie_word_embeddings", &Settings::tie_word_embeddings, "false"},
    Key{"hidden_act", &Settings::hidden_act, "\"silu\""},
    Key{"bos_token_id", &Settings::bos_token_id, "1"},
    Key{"eos_token_id", &Settings::eos_token_id, "2"},
    Key{"pad_token_id", &Settings::pad_token_id, "null"},
};

constexpr std::array<const char*, kRoles> kNames{"model.embed_tokens.weight",
                                                 "input_layernorm.weight",
                                                 "self_attn.q_proj.weight",
                                                 "self_attn.k_proj.weight",
                                                 "self_attn.v_proj.weight",
                                                 "self_attn.q_proj.bias",
                                                 "self_attn.k_proj.bias",
                                                 "self_attn.v_proj.bias",
                                                 "self_attn.q_norm.weight",
                                                 "self_attn.k_norm.weight",
                                                 "self_attn.o_proj.weight",
                                                 "self_attn.o_proj.bias",
                                                 "post_attention_layernorm.weight",
                                                 "post_attention_layernorm.weight",
                                                 "mlp.gate_proj.weight",
                                                 "mlp.up_proj.weight",
                                                 "mlp.gate_proj.bias",
                                                 "mlp.up_proj.bias",
                                                 "mlp.down_proj.weight",
                                                 "mlp.down_proj.bias",
                                                 "post_feedforward_layernorm.weight",
                                                 "model.norm.weight",
                                                 "lm_head.weight"};

const char* named(std::span<const TensorName> names, Role role, const char* otherwise) {
  const auto found =
      std::find_if(names.begin(), names.end(), [role](const TensorName& name) { return name.role == role; });
  return found == names.end() ? otherwise : found->name;
}

Activation activation_of(const std::string& name, const std::string& where) {
  if (name == "silu" || name == "swish") return Activation::silu;
  require<ModelError>(
      name == "gelu_pytorch_tanh", where, ": hidden_act is ", io::quote(name),
      ", expected \"silu\" or \"gelu_pytorch_tanh\"; another activation would change what the "
      "model computes.");
  return Activation::gelu_tanh;
}

bool has_key(const Family& family, std::string_view name) {
  return std::any_of(family.keys.begin(), family.keys.end(),
                     [name](const Key& key) { return name == key.name; });
}

void check_lists(const Family& family, const Settings& settings, const std::string& where) {
  const auto check = [&](const auto& list, const char* key) {
    if (list)
      require<ModelError>(std::ssize(*list) == settings.num_hidden_layers, where, ": ", key, " names ",
                          list->size(), " layers, expected ", settings.num_hidden_layers,
                          " as num_hidden_layers says.");
  };
  check(settings.layer_types, "layer_types");
  check(settings.no_rope_layers, "no_rope_layers");
  const auto check_interval = [&](const char* key, std::int64_t value) {
    require<ModelError>(!has_key(family, key) || value >= 1, where, ": ", key, " is ", value,
                        ", expected at least 1.");
  };
  check_interval("no_rope_layer_interval", settings.no_rope_layer_interval);
  check_interval("sliding_window_pattern", settings.sliding_window_pattern);
  const bool has_window = settings.sliding_window && settings.use_sliding_window;
  require<ModelError>(
      has_window || settings.layer_types || !family.windowed || has_key(family, "use_sliding_window"), where,
      ": sliding_window is null, but some layers of a ", family.architecture,
      " have a window; name its width, or what layers see as layer_types.");
  if (!settings.layer_types) return;
  for (const auto& type : *settings.layer_types) {
    require<ModelError>(
        type == kFull || type == kWindow, where, ": layer_types names ", io::quote(type),
        ", expected \"full_attention\" or \"sliding_attention\"; another kind of attention is "
        "not supported.");
    require<ModelError>(type == kFull || has_window, where,
                        ": layer_types names a sliding_attention, but sliding_window says no width for it.");
  }
}

// With a list in place of the rule by which a family tells which layers are turned.
Settings with_turned_layers(const Family& family, Settings settings) {
  if (settings.no_rope_layers) return settings;
  settings.no_rope_layers.emplace();
  for (std::int64_t layer = 0; layer < settings.num_hidden_layers; ++layer)
    settings.no_rope_layers->push_back(family.turned == nullptr || family.turned(settings, layer) ? 1 : 0);
  return settings;
}

// What settings with such a list say of one layer.
struct LayerRules {
  const Family& family;
  const Settings& settings;

  bool windowed(std::int64_t layer) const {
    if (!settings.sliding_window || !settings.use_sliding_window) return false;
    if (settings.layer_types) return (*settings.layer_types)[to_size(layer)] == kWindow;
    return family.windowed == nullptr || family.windowed(settings, layer);
  }
  bool turned(std::int64_t layer) const { return (*settings.no_rope_layers)[to_size(layer)] != 0; }
  std::optional<std::size_t> rope(std::int64_t layer) const {
    if (!turned(layer)) return std::nullopt;
    return windowed(layer) && settings.ropes.size() > 1 ? 1 : 0;
  }
};

Attention sizes_of_attention(const Settings& s, const std::string& where) {
  require<ModelError>(s.num_attention_heads > 0, where, ": num_attention_heads is ", s.num_attention_heads,
                      ", expected at least 1.");
  require<ModelError>(s.head_dim || s.hidden_size % s.num_attention_heads == 0, where, ": hidden_size ",
                      s.hidden_size, " is not a multiple of num_attention_heads ", s.num_attention_heads,
                      " and there is no head_dim.");
  return {.num_heads = s.num_attention_heads,
          .num_kv_heads = s.num_key_value_heads.value_or(s.num_attention_heads),
          .head_dim = s.head_dim.value_or(s.hidden_size / s.num_attention_heads)};
}

Block block_of(const Family& family, const Settings& s, std::int64_t layer, const std::string& where) {
  auto attention = sizes_of_attention(s, where);
  const LayerRules rules{family, s};
  attention.kind = {.query_key_value_bias = family.query_key_value_bias || s.attention_bias,
                    .output_bias = s.attention_bias,
                    .norm = family.norm,
                    .window = rules.windowed(layer) ? s.sliding_window : std::nullopt,
                    .rope = rules.rope(layer),
                    .scale = s.attention_multiplier,
                    .softcap = s.attn_logit_softcapping.value_or(0)};
  if (s.query_pre_attn_scalar)
    attention.kind.scale = 1 / std::sqrt(static_cast<double>(*s.query_pre_attn_scalar));
  return {.attention = attention,
          .mlp = DenseMlp{s.intermediate_size, activation_of(s.hidden_act, where), s.mlp_bias},
          .norms = family.norms,
          .residual_factor = s.residual_multiplier};
}

// The first attention of a model, or an MLP; nothing where no block has one.
const Attention* any_attention(const Config& config) {
  for (const Block& block : config.blocks)
    if (block.attention) return &*block.attention;
  return nullptr;
}

const DenseMlp* any_mlp(const Config& config) {
  for (const Block& block : config.blocks)
    if (const auto* dense = std::get_if<DenseMlp>(&block.mlp)) return dense;
  return nullptr;
}

// transformers makes the mask of a window even where a list of types leaves no layer with one.
constexpr std::int64_t kUnusedWindow = 4096;

void add_layers(const Family& family, const Config& config, Settings& s) {
  s.layer_types.emplace();
  s.no_rope_layers.emplace();
  for (const Block& block : config.blocks) {
    const auto kind = block.attention ? block.attention->kind : AttentionKind{};
    if (kind.window) s.sliding_window = kind.window;
    s.layer_types->emplace_back(kind.window ? kWindow : kFull);
    s.no_rope_layers->push_back(kind.rope ? 1 : 0);
  }
  s.use_sliding_window = s.sliding_window.has_value();
  if (!s.sliding_window && has_key(family, "layer_types") && !has_key(family, "use_sliding_window"))
    s.sliding_window = kUnusedWindow;
  s.max_window_layers = std::ssize(config.blocks);
  // Lists say it; these are what transformers takes without them.
  s.no_rope_layer_interval = 4;
  s.sliding_window_pattern = 6;
}

void add_attention(const Family& family, const Config& config, Settings& s) {
  const auto* attention = any_attention(config);
  if (attention == nullptr) return;
  s.num_attention_heads = attention->num_heads;
  s.num_key_value_heads = attention->num_kv_heads;
  s.head_dim = attention->head_dim;
  s.attention_bias = family.query_key_value_bias ? false : attention->kind.query_key_value_bias;
  if (attention->kind.softcap > 0) s.attn_logit_softcapping = attention->kind.softcap;
  const double scale =
      attention->kind.scale.value_or(1 / std::sqrt(static_cast<double>(attention->head_dim)));
  s.attention_multiplier = scale;
  s.query_pre_attn_scalar = std::llround(1 / (scale * scale));
}

}  // namespace

std::span<const Key> common_keys() {
  return kCommon;
}

std::vector<Key> keys_of(const Family& family) {
  std::vector<Key> keys;
  for (const Key& common : kCommon) {
    const auto own = std::find_if(family.keys.begin(), family.keys.end(),
                                  [&](const Key& key) { return key.member == common.member; });
    if (own == family.keys.end()) keys.push_back(common);
  }
  keys.insert(keys.end(), family.keys.begin(), family.keys.end());
  return keys;
}

std::string tensor_name(const Family& family, Role role) {
  return named(family.tensors, role, kNames[static_cast<std::size_t>(role)]);
}

std::string stored_name(const Family& family, Role role) {
  return named(family.stored, role, tensor_name(family, role).c_str());
}

bool same_files(const Family& a, const Family& b) {
  for (std::size_t role = 0; role < kRoles; ++role)
    if (stored_name(a, static_cast<Role>(role)) != stored_name(b, static_cast<Role>(role))) return false;
  return a.norm_weights_less == b.norm_weights_less;
}

Config config_of(const Family& family, const Settings& s, const std::string& where) {
  require<ModelError>(s.num_hidden_layers > 0 && s.num_hidden_layers <= kMaxBlocks, where,
                      ": num_hidden_layers is ", s.num_hidden_layers, ", expected 1 to ", kMaxBlocks, ".");
  check_lists(family, s, where);
  Config config;
  config.architecture = family.architecture;
  config.vocab_size = s.vocab_size;
  config.hidden_size = s.hidden_size;
  config.max_position_embeddings = s.max_position_embeddings;
  config.rms_norm_eps = s.rms_norm_eps;
  config.ropes = s.ropes;
  config.embedding_factor =
      family.embedding_times_root ? std::sqrt(static_cast<double>(s.hidden_size)) : s.embedding_multiplier;
  config.logits_factor = 1 / s.logits_scaling;
  config.logits_softcap = s.final_logit_softcapping.value_or(0);
  config.initializer_range = s.initializer_range;
  config.tie_word_embeddings = s.tie_word_embeddings;
  config.bos_token_ids = s.bos_token_id;
  config.eos_token_ids = s.eos_token_id;
  if (s.pad_token_id) config.pad_token_id = static_cast<std::int32_t>(*s.pad_token_id);
  const Settings by_layer = with_turned_layers(family, s);
  for (std::int64_t layer = 0; layer < s.num_hidden_layers; ++layer)
    config.blocks.push_back(block_of(family, by_layer, layer, where));
  return config;
}

Settings settings_of(const Family& family, const Config& config) {
  Settings s;
  s.vocab_size = config.vocab_size;
  s.hidden_size = config.hidden_size;
  s.num_hidden_layers = std::ssize(config.blocks);
  s.max_position_embeddings = config.max_position_embeddings;
  s.rms_norm_eps = config.rms_norm_eps;
  s.initializer_range = config.initializer_range;
  s.tie_word_embeddings = config.tie_word_embeddings;
  s.bos_token_id = config.bos_token_ids;
  s.eos_token_id = config.eos_token_ids;
  if (config.pad_token_id) s.pad_token_id = *config.pad_token_id;
  s.embedding_multiplier = config.embedding_factor;
  s.logits_scaling = 1 / config.logits_factor;
  if (config.logits_softcap > 0) s.final_logit_softcapping = config.logits_softcap;
  if (!config.blocks.empty()) s.residual_multiplier = config.blocks.front().residual_factor;
  if (const auto* mlp = any_mlp(config)) {
    s.intermediate_size = mlp->width;
    s.hidden_act = mlp->activation == Activation::silu ? "silu" : "gelu_pytorch_tanh";
    s.mlp_bias = mlp->bias;
  }
  s.ropes = config.ropes;
  add_attention(family, config, s);
  add_layers(family, config, s);
  return s;
}

}  // namespace retort::architecture
