#pragma once
// Small configurations whose blocks differ.

#include <string>

#include "retort/architecture/config.h"
#include "retort/architecture/families.h"
#include "retort/architecture/hf_config.h"
#include "support/message_of.h"

namespace retort::test {

/// Of a family, as its table says where config.json is silent, with other keys.
inline architecture::Config config_of(const architecture::Family& family, const base::Json& keys = {}) {
  base::Json json = {{"architectures", {family.architecture}},
                     {"model_type", family.model_type},
                     {"vocab_size", 24},
                     {"hidden_size", 32},
                     {"intermediate_size", 24},
                     {"num_hidden_layers", 4},
                     {"num_attention_heads", 8},
                     {"num_key_value_heads", 4},
                     {"head_dim", 4},
                     {"max_position_embeddings", 64},
                     {"bos_token_id", 1},
                     {"eos_token_id", 2},
                     {"pad_token_id", 0}};
  for (const auto& [key, value] : keys.items()) json[key] = value;
  return architecture::parse_hf_config(json.dump(), "config.json");
}

inline architecture::Config config_of(const char* architecture, const base::Json& keys = {}) {
  return config_of(architecture::family_of(architecture), keys);
}

inline void set_groups(architecture::Block& block, std::int64_t groups) {
  auto& attention = *block.attention;
  attention.num_heads = attention.num_heads / attention.num_kv_heads * groups;
  attention.num_kv_heads = groups;
}

inline void set_width(architecture::Block& block, std::int64_t width) {
  std::get<architecture::DenseMlp>(block.mlp).width = width;
}

inline bool heads_stand_alone(const architecture::Config& config) {
  return config.blocks.front().attention->kind.norm != architecture::QueryKeyNorm::across_heads;
}

/// Without parts of all kinds; block 0 keeps all heads, block 3 all channels.
inline architecture::Config pruned(architecture::Config config) {
  set_width(config.blocks[0], 8);
  config.blocks[1].attention.reset();
  config.blocks[2].mlp = std::monostate{};
  if (heads_stand_alone(config)) set_groups(config.blocks[2], 3);
  if (heads_stand_alone(config)) set_groups(config.blocks[3], 1);
  return config;
}

}  // namespace retort::test
