// Source: transformers 5.23.0, models/qwen2: q, k and v always have a bias, o never.
#include "retort/architecture/families/all.h"

namespace retort::architecture {

constexpr Key kKeys[] = {{"num_key_value_heads", &Settings::num_key_value_heads, "32"},
                         {"bos_token_id", &Settings::bos_token_id, "null"},
                         {"eos_token_id", &Settings::eos_token_id, "null"},
                         {"use_sliding_window", &Settings::use_sliding_window, "false"},
                         {"sliding_window", &Settings::sliding_window, "4096"},
                         {"max_window_layers", &Settings::max_window_layers, "28"},
                         {"layer_types", &Settings::layer_types, "null", "\"full_attention\""}};
constexpr std::string_view kIgnored[] = {"attention_bias", "mlp_bias"};

const Family kQwen2{
    .architecture = "Qwen2ForCausalLM",
    .model_type = "qwen2",
    .models = "Qwen2, Qwen2.5, DeepSeek-R1-Distill-Qwen",
    .keys = kKeys,
    .query_key_value_bias = true,
    .windowed = [](const Settings& s, std::int64_t layer) { return layer >= s.max_window_layers; },
    .tokenizer_class = "Qwen2Tokenizer",
    .tokenizer_class_is_fixed = true,
    .ignored = kIgnored};

}  // namespace retort::architecture
