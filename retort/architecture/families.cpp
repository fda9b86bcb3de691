#include "retort/architecture/families.h"

#include <algorithm>
#include <array>

#include "retort/base/error.h"
#include "retort/io/quote.h"

namespace retort::architecture {
namespace {

// LlamaConfig of transformers 5 insists on it, even where head_dim stands beside it.
bool heads_divide_hidden(const Block& block, std::int64_t hidden_size) {
  return block.attention && hidden_size % block.attention->num_heads == 0;
}

bool any_shape(const Block&, std::int64_t) {
  return true;
}

void add_llama_keys(base::Json& config) {
  config["attention_bias"] = false;
  config["mlp_bias"] = false;
  config["pretraining_tp"] = 1;
}

void add_mistral_keys(base::Json& config) {
  config["sliding_window"] = nullptr;  // absent would mean 4096
}

constexpr std::array<Family, 2> kFamilies{{
    {.names = {"LlamaForCausalLM", "llama"},
     .mathematics = Mathematics::llama,
     .reading = {.default_kv_heads = 0, .default_window = std::nullopt},
     .writing = {heads_divide_hidden, add_llama_keys}},
    {.names = {"MistralForCausalLM", "mistral"},
     .mathematics = Mathematics::llama,
     .reading = {.default_kv_heads = 8, .default_window = 4096},
     .writing = {any_shape, add_mistral_keys}},
}};

}  // namespace

std::span<const Family> families() {
  return kFamilies;
}

std::string supported_architectures() {
  std::string list;
  for (const Family& family : kFamilies)
    list += (list.empty() ? "" : ", ") + std::string(family.names.architecture);
  return list;
}

const Family& family_of(std::string_view architecture) {
  const auto found = std::find_if(kFamilies.begin(), kFamilies.end(), [&](const Family& family) {
    return architecture == family.names.architecture;
  });
  base::require<base::ModelError>(found != kFamilies.end(), "config.json: architecture ",
                                  io::quote(architecture), " is not supported; supported are ",
                                  supported_architectures(), ".");
  return *found;
}

const Family& written_family(const Config& config) {
  const Family& own = family_of(config.architecture);
  const auto can_say = [&](const Family& family) {
    return family.mathematics == own.mathematics &&
           family.writing.can_say(config.blocks.front(), config.hidden_size);
  };
  if (can_say(own)) return own;
  const auto other = std::find_if(kFamilies.begin(), kFamilies.end(), can_say);
  base::require<base::ModelError>(other != kFamilies.end(), "config.json: no family computes what a ",
                                  config.architecture, " does and may have hidden_size ", config.hidden_size,
                                  " with these heads; leave heads or hidden features as they are.");
  return *other;
}

}  // namespace retort::architecture
