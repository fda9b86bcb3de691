// Source: transformers 5.23.0, models/gemma3, the language model.
#include "retort/architecture/families/all.h"

namespace retort::architecture {

// The first three: hub files of the model that also sees leave them out.
constexpr Key kKeys[] = {{"vocab_size", &Settings::vocab_size, "262208"},
                         {"num_attention_heads", &Settings::num_attention_heads, "8"},
                         {"max_position_embeddings", &Settings::max_position_embeddings, "131072"},
                         {"num_key_value_heads", &Settings::num_key_value_heads, "4"},
                         {"head_dim", &Settings::head_dim, "256"},
                         {"tie_word_embeddings", &Settings::tie_word_embeddings, "true"},
                         {"hidden_activation", &Settings::hidden_act, "\"gelu_pytorch_tanh\"", "\"silu\""},
                         {"bos_token_id", &Settings::bos_token_id, "2"},
                         {"eos_token_id", &Settings::eos_token_id, "1"},
                         {"pad_token_id", &Settings::pad_token_id, "0"},
                         {"attention_bias", &Settings::attention_bias, "false", "false"},
                         {"query_pre_attn_scalar", &Settings::query_pre_attn_scalar, "256", "null"},
                         {"sliding_window", &Settings::sliding_window, "4096"},
                         {"sliding_window_pattern", &Settings::sliding_window_pattern, "6"},
                         {"layer_types", &Settings::layer_types, "null", "\"full_attention\""},
                         {"final_logit_softcapping", &Settings::final_logit_softcapping, "null", "null"}};
constexpr TensorName kTensors[] = {{Role::mlp_norm, "pre_feedforward_layernorm.weight"}};
constexpr std::string_view kIgnored[] = {"hidden_act", "cache_implementation", "attn_logit_softcapping"};

namespace {

bool windowed(const Settings& s, std::int64_t layer) {
  return (layer + 1) % s.sliding_window_pattern != 0;
}

}  // namespace

const Family kGemma3{.architecture = "Gemma3ForCausalLM",
                     .model_type = "gemma3_text",
                     .models = "Gemma 3, text",
                     .keys = kKeys,
                     .norm = QueryKeyNorm::per_head,
                     .norms = NormPlacement::both,
                     .norm_weights_less = 1,
                     .embedding_times_root = true,
                     .heads_divide_hidden = true,
                     .rope_theta = 1e6,
                     .window_theta = 1e4,
                     .window_theta_key = "rope_local_base_freq",
                     .windowed = windowed,
                     .tokenizer_class = "GemmaTokenizer",
                     .tensors = kTensors,
                     .ignored = kIgnored};

}  // namespace retort::architecture
