// Source: transformers 5.23.0, models/qwen3.
#include "retort/architecture/families/all.h"

namespace retort::architecture {

constexpr Key kKeys[] = {{"num_key_value_heads", &Settings::num_key_value_heads, "32"},
                         {"head_dim", &Settings::head_dim, "128"},
                         {"bos_token_id", &Settings::bos_token_id, "null"},
                         {"eos_token_id", &Settings::eos_token_id, "null"},
                         {"attention_bias", &Settings::attention_bias, "false", "false"},
                         {"use_sliding_window", &Settings::use_sliding_window, "false"},
                         {"sliding_window", &Settings::sliding_window, "4096"},
                         {"max_window_layers", &Settings::max_window_layers, "28"},
                         {"layer_types", &Settings::layer_types, "null", "\"full_attention\""}};

const Family kQwen3{
    .architecture = "Qwen3ForCausalLM",
    .model_type = "qwen3",
    .models = "Qwen3, dense",
    .keys = kKeys,
    .norm = QueryKeyNorm::per_head,
    .windowed = [](const Settings& s, std::int64_t layer) { return layer >= s.max_window_layers; },
    .tokenizer_class = "Qwen2Tokenizer"};

}  // namespace retort::architecture
