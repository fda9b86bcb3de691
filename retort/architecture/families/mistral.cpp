// Source: transformers 5.23.0, models/mistral.
#include "retort/architecture/families/all.h"

namespace retort::architecture {

constexpr Key kKeys[] = {{"num_key_value_heads", &Settings::num_key_value_heads, "8"},
                         {"sliding_window", &Settings::sliding_window, "4096"}};
constexpr std::string_view kIgnored[] = {"use_sliding_window", "max_window_layers"};

const Family kMistral{.architecture = "MistralForCausalLM",
                      .model_type = "mistral",
                      .models = "Mistral 7B, Nemo, Small 24B",
                      .keys = kKeys,
                      .tokenizer_class_is_fixed = true,
                      .cuts_by_tekken = true,
                      .ignored = kIgnored};

}  // namespace retort::architecture
