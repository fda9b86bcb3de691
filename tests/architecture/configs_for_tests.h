#pragma once
// Small configurations.

#include <algorithm>
#include <string_view>

#include "retort/architecture/config.h"
#include "retort/architecture/family.h"
#include "support/message_of.h"

namespace retort::test {

inline architecture::Config small_config(bool tied = false) {
  architecture::Config config;
  config.vocab_size = 96;
  config.hidden_size = 32;
  config.max_position_embeddings = 64;
  config.tie_word_embeddings = tied;
  config.bos_token_ids = {1};
  config.eos_token_ids = {2};
  config.blocks.assign(3, {architecture::Attention{4, 2, 8}, architecture::DenseMlp{88}});
  return config;
}

inline bool has_key(const architecture::Family& family, std::string_view name) {
  const auto keys = architecture::keys_of(family);
  return std::any_of(keys.begin(), keys.end(), [name](const auto& key) { return name == key.name; });
}

}  // namespace retort::test
