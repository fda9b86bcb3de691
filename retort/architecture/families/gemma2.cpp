// Source: transformers 5.23.0, models/gemma2.
#include "retort/architecture/families/all.h"

namespace retort::architecture {

constexpr Key kKeys[] = {{"num_key_value_heads", &Settings::num_key_value_heads, "4"},
                         {"head_dim", &Settings::head_dim, "256"},
                         {"tie_word_embeddings", &Settings::tie_word_embeddings, "true"},
                         {"hidden_activation", &Settings::hidden_act, "\"gelu_pytorch_tanh\"", "\"silu\""},
                         {"bos_token_id", &Settings::bos_token_id, "2"},
                         {"eos_token_id", &Settings::eos_token_id, "1"},
                         {"pad_token_id", &Settings::pad_token_id, "0"},
                         {"attention_bias", &Settings::attention_bias, "false", "false"},
                         {"query_pre_attn_scalar", &Settings::query_pre_attn_scalar, "256", "null"},
                         {"sliding_window", &Settings::sliding_window, "4096"},
                         {"layer_types", &Settings::layer_types, "null", "\"full_attention\""},
                         {"attn_logit_softcapping", &Settings::attn_logit_softcapping, "50.0", "null"},
                         {"final_logit_softcapping", &Settings::final_logit_softcapping, "30.0", "null"}};
constexpr TensorName kTensors[] = {{Role::mlp_norm, "pre_feedforward_layernorm.weight"}};
constexpr std::string_view kIgnored[] = {"hidden_act", "cache_implementation"};

const Family kGemma2{.architecture = "Gemma2ForCausalLM",
                     .model_type = "gemma2",
                     .models = "Gemma 2",
                     .keys = kKeys,
                     .norms = NormPlacement::both,
                     .norm_weights_less = 1,
                     .embedding_times_root = true,
                     .heads_divide_hidden = true,
                     .windowed = [](const Settings&, std::int64_t layer) { return (layer + 1) % 2 != 0; },
                     .tokenizer_class = "GemmaTokenizer",
                     .tensors = kTensors,
                     .ignored = kIgnored};

}  // namespace retort::architecture
