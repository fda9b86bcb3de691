// Source: transformers 5.23.0, models/llama.
#include "retort/architecture/families/all.h"

namespace retort::architecture {

constexpr Key kKeys[] = {{"attention_bias", &Settings::attention_bias, "false", "false"},
                         {"mlp_bias", &Settings::mlp_bias, "false", "false"}};
constexpr std::string_view kIgnored[] = {"sliding_window", "use_sliding_window", "max_window_layers"};

const Family kLlama{.architecture = "LlamaForCausalLM",
                    .model_type = "llama",
                    .models = "Llama 2 to 3.3, SmolLM2, TinyLlama, DeepSeek-R1-Distill-Llama",
                    .keys = kKeys,
                    .heads_divide_hidden = true,
                    .ignored = kIgnored};

}  // namespace retort::architecture
