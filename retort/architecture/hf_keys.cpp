#include "retort/architecture/hf_keys.h"

#include <algorithm>
#include <array>

#include "retort/architecture/hf_rope.h"

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
bool is_silu(const Json& value) {
  return value == "silu" || value == "swish";
}
bool is_rotary(const Json& value) {
  return value == "rope" || value == "rotary";
}
bool is_full_attention(const Json& value) {
  return value.is_array() &&
         std::all_of(value.begin(), value.end(), [](const Json& type) { return type == "full_attention"; });
}
bool is_all_rotary(const Json& value) {  // SmolLM3 and Llama 4: 1 stands for a layer with positions
  return value.is_array() &&
         std::all_of(value.begin(), value.end(), [](const Json& layer) { return is_one(layer); });
}

constexpr std::string_view kBias = "a bias";
constexpr std::string_view kScale = "a scaling factor";
constexpr std::string_view kSoftcap = "soft-capping";
constexpr std::string_view kNorm = "another normalisation";
constexpr std::string_view kAttention = "another kind of attention";
constexpr std::string_view kExperts = "a mixture of experts";
constexpr std::string_view kPositions = "another position encoding";
constexpr std::string_view kLatent = "latent attention (MLA)", kLinear = "linear attention",
                           kStates = "state-space layers", kEncoder = "an encoder";
constexpr std::string_view kShapes = "blocks of different shapes in a form that is not known";

constexpr bool kAnotherModel = true;

constexpr std::array kRefused{
    RefusedKey{"attention_bias", is_false, kBias},
    RefusedKey{"mlp_bias", is_false, kBias},
    RefusedKey{"bias", is_false, kBias},
    RefusedKey{"use_bias", is_false, kBias},
    RefusedKey{"qkv_bias", is_false, kBias},
    RefusedKey{"use_qkv_bias", is_false, kBias},
    RefusedKey{"attention_out_bias", is_false, kBias},
    RefusedKey{"lm_head_bias", is_false, kBias},
    RefusedKey{"hidden_act", is_silu, "an activation other than silu"},
    RefusedKey{"hidden_activation", is_silu, "an activation other than silu"},
    RefusedKey{"rotary_pct", is_one, kPositions},
    RefusedKey{"rope_interleaved", is_false, kPositions},
    RefusedKey{"position_embedding_type", is_rotary, kPositions},
    RefusedKey{"alibi", is_false, kPositions},
    RefusedKey{"no_rope_layers", is_all_rotary, kPositions},
    RefusedKey{"layer_types", is_full_attention, kAttention},
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
    RefusedKey{"attn_logit_softcapping", never, kSoftcap},
    RefusedKey{"final_logit_softcapping", never, kSoftcap},
    RefusedKey{"query_pre_attn_scalar", never, kScale},
    RefusedKey{"attention_multiplier", never, kScale},
    RefusedKey{"embedding_multiplier", is_one, kScale},
    RefusedKey{"residual_multiplier", is_one, kScale},
    RefusedKey{"logits_scaling", is_one, kScale},
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
    RefusedKey{"quantization_config", never, "quantized weights", kAnotherModel},
    RefusedKey{"compression_config", never, "compressed weights"},
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

}  // namespace

std::span<const RefusedKey> refused_keys() {
  return kRefused;
}

bool is_key_of(const Family& family, std::string_view key) {
  const auto own = keys_of(family);
  return std::any_of(own.begin(), own.end(), [key](const Key& row) { return key == row.name; }) ||
         std::find(family.ignored.begin(), family.ignored.end(), key) != family.ignored.end();
}

bool is_known_key(std::string_view key) {
  if (!key.empty() && key.front() == '_') return true;  // transformers' own notes, for example _name_or_path
  const auto among = [key](const auto& list) {
    return std::find(list.begin(), list.end(), key) != list.end();
  };
  return among(kHonoured) || among(kHarmless) || is_rope_key(key) ||
         std::any_of(kRefused.begin(), kRefused.end(),
                     [key](const RefusedKey& refused) { return key == refused.name; });
}

}  // namespace retort::architecture
