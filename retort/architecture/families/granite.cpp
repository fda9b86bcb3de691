// Source: transformers 5.23.0, models/granite.
#include "retort/architecture/families/all.h"

namespace retort::architecture {

constexpr Key kKeys[] = {{"attention_bias", &Settings::attention_bias, "false", "false"},
                         {"mlp_bias", &Settings::mlp_bias, "false", "false"},
                         {"embedding_multiplier", &Settings::embedding_multiplier, "1.0", "1.0"},
                         {"residual_multiplier", &Settings::residual_multiplier, "1.0", "1.0"},
                         {"attention_multiplier", &Settings::attention_multiplier, "1.0", "null"},
                         {"logits_scaling", &Settings::logits_scaling, "1.0", "1.0"}};

const Family kGranite{.architecture = "GraniteForCausalLM",
                      .model_type = "granite",
                      .models = "Granite 3, dense",
                      .keys = kKeys,
                      .tokenizer_class_is_fixed = true};

}  // namespace retort::architecture
