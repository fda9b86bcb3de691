// Source: transformers 5.23.0, models/ministral.
#include "retort/architecture/families/all.h"

namespace retort::architecture {

constexpr Key kKeys[] = {{"num_key_value_heads", &Settings::num_key_value_heads, "8"},
                         {"sliding_window", &Settings::sliding_window, "4096"},
                         {"layer_types", &Settings::layer_types, "null", "\"full_attention\""}};

const Family kMinistral{.architecture = "MinistralForCausalLM",
                        .model_type = "ministral",
                        .models = "Ministral 8B with windows",
                        .keys = kKeys,
                        .tokenizer_class_is_fixed = true,
                        .cuts_by_tekken = true};

}  // namespace retort::architecture
