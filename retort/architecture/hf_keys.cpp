#include "retort/architecture/hf_keys.h"

#include <algorithm>
#include <array>
#include <utility>

#include "retort/architecture/families.h"
#include "retort/architecture/hf_rope.h"
#include "retort/base/error.h"

namespace retort::architecture {
namespace {

using base::Json;

// Null never comes here: it means absent.
bool never(const Json&) {
  return false;
}
bool is_false(const Json& value) {
  return value.is_boolean() && !value.get<bool>();
}
bool is_true(const Json& value) {
  return value.is_boolean() && value.get<bool>();
}
bool is_one(const Json& value) {
  return value.is_number() && value.get<double>() == 1.0;
}
bool is_zero(const Json& value) {
  return value.is_number() && value.get<double>() == 0.0;
}
bool is_zero_or_one(const Json& value) {
  return is_zero(value) || is_one(value);
}
bool is_false_or_zero(const Json& value) {
  return is_false(value) || is_zero(value);
}
bool is_empty(const Json& value) {
  return (value.is_array() || value.is_object()) && value.empty();
}
bool is_rotary(const Json& value) {
  return value == "rope" || value == "rotary";
}

constexpr std::string_view kBias = "a bias";
constexpr std::string_view kScale = "a scaling factor";
constexpr std::string_view kNorm = "another normalisation";
constexpr std::string_view kAttention = "another kind of attention";
constexpr std::string_view kExperts = "a mixture of experts";
constexpr std::string_view kPositions = "another position encoding";
constexpr std::string_view kLatent = "latent attention (MLA)", kLinear = "linear attention",
                           kStates = "state-space layers", kEncoder = "an encoder";
constexpr std::string_view kShapes = "blocks of different shapes in a form that is not known";

constexpr bool kAnotherModel = true;
constexpr const char* kDequantise =
    "; use the model that was quantised or dequantise it with transformers, and where the weights are BF16, "
    "F16 or F32 "
    "already take the key out";

constexpr std::array kRefused{
    RefusedKey{"bias", is_false, kBias},
    RefusedKey{"use_bias", is_false, kBias},
    RefusedKey{"qkv_bias", is_false, kBias},
    RefusedKey{"use_qkv_bias", is_false, kBias},
    RefusedKey{"attention_out_bias", is_false, kBias},
    RefusedKey{"lm_head_bias", is_false, kBias},
    RefusedKey{"rotary_pct", is_one, kPositions},
    RefusedKey{"rope_interleaved", is_false, kPositions},
    RefusedKey{"position_embedding_type", is_rotary, kPositions},
    RefusedKey{"alibi", is_false, kPositions},
    RefusedKey{"attention_chunk_size", never, kAttention},
    RefusedKey{"attn_temperature_tuning", is_false_or_zero, kAttention},
    RefusedKey{"clip_qkv", never, kAttention},
    RefusedKey{"num_local_experts", is_zero_or_one, kExperts, kAnotherModel},
    RefusedKey{"num_experts", is_zero_or_one, kExperts, kAnotherModel},
    RefusedKey{"n_routed_experts", is_zero, kExperts, kAnotherModel},
    RefusedKey{"moe_num_experts", is_zero_or_one, kExperts, kAnotherModel},
    RefusedKey{"kv_lora_rank", never, kLatent, kAnotherModel},
    RefusedKey{"q_lora_rank", never, kLatent, kAnotherModel},
    RefusedKey{"linear_num_key_heads", never, kLinear, kAnotherModel},
    RefusedKey{"linear_attn_config", never, kLinear, kAnotherModel},
    RefusedKey{"attention_hidden_size", never, kLinear, kAnotherModel},
    RefusedKey{"ssm_cfg", never, kStates, kAnotherModel},
    RefusedKey{"state_size", never, kStates, kAnotherModel},
    RefusedKey{"mamba_d_state", never, kStates, kAnotherModel},
    RefusedKey{"ssm_state_size", never, kStates, kAnotherModel},
    RefusedKey{"add_cross_attention", is_false, kAttention},
    RefusedKey{"is_encoder_decoder", is_false, kEncoder, kAnotherModel},
    RefusedKey{"type_vocab_size", never, kEncoder, kAnotherModel},
    RefusedKey{"use_mrope", is_false, kPositions},
    RefusedKey{"use_bidirectional_attention", is_false, "attention that looks ahead"},
    RefusedKey{"is_causal", is_true, "attention that looks ahead"},
    RefusedKey{"logit_scale", is_one, kScale},
    RefusedKey{"lm_head_multiplier", is_one, kScale},
    RefusedKey{"scale_emb", is_one, kScale},
    RefusedKey{"scale_depth", never, kScale},
    RefusedKey{"dim_model_base", never, kScale},
    RefusedKey{"qk_norm", is_false, kNorm},
    RefusedKey{"use_qk_norm", is_false, kNorm},
    RefusedKey{"qk_layernorm", is_false, kNorm},
    RefusedKey{"use_parallel_residual", is_false, "blocks whose halves run in parallel"},
    RefusedKey{"block_configs", is_empty, kShapes},
    RefusedKey{"pruned_heads", is_empty, kShapes},
    RefusedKey{"quantization_config", never, "quantized weights", kAnotherModel, kDequantise},
    RefusedKey{"compression_config", never, "compressed weights", false, kDequantise},
};

constexpr std::array<std::string_view, 5> kHonoured{"architectures", "model_type", "base_model_type",
                                                    "per_layer_config", "attention_dropout"};

// Code of a model is never run: a family computes what its class in transformers does.
constexpr std::array<std::string_view, 27> kHarmless{"torch_dtype",
                                                     "dtype",
                                                     "auto_map",
                                                     "pretraining_tp",
                                                     "use_cache",
                                                     "transformers_version",
                                                     "return_dict",
                                                     "output_attentions",
                                                     "output_hidden_states",
                                                     "torchscript",
                                                     "is_decoder",
                                                     "chunk_size_feed_forward",
                                                     "id2label",
                                                     "label2id",
                                                     "problem_type",
                                                     "tokenizer_class",
                                                     "decoder_start_token_id",
                                                     "prefix",
                                                     "gradient_checkpointing",
                                                     "unsloth_version",
                                                     "unsloth_fixed",
                                                     "use_bfloat16",
                                                     "tie_encoder_decoder",
                                                     "cross_attention_hidden_size",
                                                     "finetuning_task",
                                                     "num_experts_per_tok",
                                                     "router_aux_loss_coef"};

template <typename List>
bool is_among(std::string_view key, const List& list) {
  return std::find(list.begin(), list.end(), key) != list.end();
}

template <typename List>
auto* row_of(std::string_view key, const List& list) {
  const auto found =
      std::find_if(list.begin(), list.end(), [key](const auto& row) { return key == row.name; });
  return found == list.end() ? nullptr : &*found;
}

bool is_key_of(const Family& family, std::string_view key) {
  return row_of(key, keys_of(family)) != nullptr || is_among(key, family.ignored);
}

// The first family that computes something else by a key.
std::pair<const Family*, const Key*> owner_of(std::string_view key) {
  for (const Family* family : families())
    if (const Key* row = row_of(key, family->keys); row != nullptr && row->neutral != nullptr)
      return {family, row};
  return {};
}

// A list has the value for each layer.
bool is_list(const Key& key) {
  return std::holds_alternative<std::optional<std::vector<std::string>> Settings::*>(key.member) ||
         std::holds_alternative<std::optional<std::vector<std::int64_t>> Settings::*>(key.member);
}

bool is_neutral(const Key& key, const Json& value) {
  const Json neutral = base::parse_json(key.neutral);
  if (neutral.is_null()) return false;
  if (!is_list(key)) return value == neutral;
  return value.is_array() &&
         std::all_of(value.begin(), value.end(), [&](const Json& element) { return element == neutral; });
}

}  // namespace

std::span<const RefusedKey> refused_keys() {
  return kRefused;
}

std::string why_refused(const Family& family, std::string_view key, const Json& value) {
  if (value.is_null() || is_key_of(family, key)) return {};
  if (const RefusedKey* row = row_of(key, kRefused))
    return row->is_neutral(value) ? "" : base::join(row->reason, " in a ", family.architecture);
  const auto [owner, row] = owner_of(key);
  if (owner == nullptr || is_neutral(*row, value)) return {};
  return base::join("a setting of ", owner->architecture, " beyond those of ", family.architecture);
}

std::string_view remedy_of(std::string_view key) {
  const RefusedKey* row = row_of(key, kRefused);
  return row == nullptr ? "" : row->remedy;
}

bool is_known_key(const Family& family, std::string_view key) {
  if (!key.empty() && key.front() == '_') return true;  // transformers' own notes, for example _name_or_path
  return is_key_of(family, key) || is_among(key, kHonoured) || is_among(key, kHarmless) || is_rope_key(key) ||
         row_of(key, kRefused) != nullptr || owner_of(key).first != nullptr;
}

}  // namespace retort::architecture
