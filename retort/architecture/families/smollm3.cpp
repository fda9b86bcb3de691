// Source: transformers 5.23.0, models/smollm3: each fourth layer is not told positions.
#include "retort/architecture/families/all.h"

namespace retort::architecture {
namespace {

constexpr Key kKeys[] = {{"num_key_value_heads", &Settings::num_key_value_heads, "4"},
                         {"tie_word_embeddings", &Settings::tie_word_embeddings, "true"},
                         {"bos_token_id", &Settings::bos_token_id, "128000"},
                         {"eos_token_id", &Settings::eos_token_id, "128001"},
                         {"pad_token_id", &Settings::pad_token_id, "128004"},
                         {"attention_bias", &Settings::attention_bias, "false", "false"},
                         {"mlp_bias", &Settings::mlp_bias, "false", "false"},
                         {"use_sliding_window", &Settings::use_sliding_window, "false"},
                         {"sliding_window", &Settings::sliding_window, "null"},
                         {"layer_types", &Settings::layer_types, "null", "\"full_attention\""},
                         {"no_rope_layers", &Settings::no_rope_layers, "null", "1"},
                         {"no_rope_layer_interval", &Settings::no_rope_layer_interval, "4"}};
constexpr std::string_view kIgnored[] = {"max_window_layers"};

bool turned(const Settings& s, std::int64_t layer) {
  return (layer + 1) % s.no_rope_layer_interval != 0;
}

bool windowed(const Settings& s, std::int64_t layer) {
  return (*s.no_rope_layers)[static_cast<std::size_t>(layer)] == 0;
}

}  // namespace

const Family kSmolLM3{.architecture = "SmolLM3ForCausalLM",
                      .model_type = "smollm3",
                      .models = "SmolLM3",
                      .keys = kKeys,
                      .rope_theta = 2e6,
                      .windowed = windowed,
                      .turned = turned,
                      .ignored = kIgnored};

}  // namespace retort::architecture
