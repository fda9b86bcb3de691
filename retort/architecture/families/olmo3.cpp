// Source: transformers 5.23.0, models/olmo3: OLMo 2 with a window in three of four layers.
#include "retort/architecture/families/all.h"

namespace retort::architecture {

constexpr Key kKeys[] = {{"rms_norm_eps", &Settings::rms_norm_eps, "1e-05"},
                         {"bos_token_id", &Settings::bos_token_id, "null"},
                         {"eos_token_id", &Settings::eos_token_id, "50279"},
                         {"pad_token_id", &Settings::pad_token_id, "1"},
                         {"attention_bias", &Settings::attention_bias, "false", "false"},
                         {"sliding_window", &Settings::sliding_window, "4096"},
                         {"layer_types", &Settings::layer_types, "null", "\"full_attention\""}};

const Family kOlmo3{.architecture = "Olmo3ForCausalLM",
                    .model_type = "olmo3",
                    .models = "OLMo 3",
                    .keys = kKeys,
                    .norm = QueryKeyNorm::across_heads,
                    .norms = NormPlacement::after,
                    .rope_theta = 5e5,
                    .window_theta = 5e5,
                    .windowed = [](const Settings&, std::int64_t layer) { return (layer + 1) % 4 != 0; },
                    .tokenizer_class_is_fixed = true};

}  // namespace retort::architecture
