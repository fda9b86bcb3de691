// Source: transformers 5.23.0, models/olmo2: norms stand after the halves of a block, and over all heads.
#include "retort/architecture/families/all.h"

namespace retort::architecture {

constexpr Key kKeys[] = {{"rms_norm_eps", &Settings::rms_norm_eps, "1e-05"},
                         {"bos_token_id", &Settings::bos_token_id, "null"},
                         {"eos_token_id", &Settings::eos_token_id, "50279"},
                         {"pad_token_id", &Settings::pad_token_id, "1"},
                         {"attention_bias", &Settings::attention_bias, "false", "false"}};

const Family kOlmo2{.architecture = "Olmo2ForCausalLM",
                    .model_type = "olmo2",
                    .models = "OLMo 2",
                    .keys = kKeys,
                    .norm = QueryKeyNorm::across_heads,
                    .norms = NormPlacement::after,
                    .tokenizer_class_is_fixed = true};

}  // namespace retort::architecture
