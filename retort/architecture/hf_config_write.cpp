#include "retort/architecture/families.h"
#include "retort/architecture/hf_config.h"
#include "retort/architecture/hf_layers.h"

namespace retort::architecture {
namespace {

using base::Json;

Json tokens_json(const std::vector<std::int32_t>& ids) {
  if (ids.empty()) return nullptr;
  return ids.size() == 1 ? Json(ids.front()) : Json(ids);
}

// Blocks that are alike: what every program reads.
void write_stock_form(const Config& config, Json& json) {
  const Family& family = written_family(config);
  const Block& block = config.blocks.front();
  json["architectures"] = Json::array({family.names.architecture});
  json["model_type"] = family.names.model_type;
  json["head_dim"] = block.attention->head_dim;
  json["intermediate_size"] = std::get<DenseMlp>(block.mlp).width;
  json["num_attention_heads"] = block.attention->num_heads;
  json["num_key_value_heads"] = block.attention->num_kv_heads;
  family.writing.add_keys(json);
}

// Blocks that differ.  No other program may take this for a model that it knows: it would fill in what is
// missing with random numbers.
void write_own_form(const Config& config, Json& json) {
  const Family& family = family_of(config.architecture);
  json["architectures"] = Json::array({kOwnArchitecture});
  json["model_type"] = kOwnModelType;
  json["base_model_type"] = family.names.model_type;
  json["auto_map"] = own_code();
  write_layers(config.blocks, json);
  family.writing.add_keys(json);
}

void write_numbers(const Config& config, Json& json) {
  json["hidden_size"] = config.hidden_size;
  json["max_position_embeddings"] = config.max_position_embeddings;
  json["num_hidden_layers"] = config.blocks.size();
  json["tie_word_embeddings"] = config.tie_word_embeddings;
  json["vocab_size"] = config.vocab_size;
  json["hidden_act"] = "silu";
  json["attention_dropout"] = 0.0;
  json["initializer_range"] = config.initializer_range;
  json["rms_norm_eps"] = config.rms_norm_eps;
  json["rope_theta"] = config.rope_theta;
  json["rope_scaling"] = nullptr;
  json["rope_parameters"] = Json{{"rope_theta", config.rope_theta}, {"rope_type", "default"}};
}

}  // namespace

std::string hf_config_json(const Config& config, const HfExtras& extras) {
  Json json = Json::object();
  if (config.uniform())
    write_stock_form(config, json);
  else
    write_own_form(config, json);
  write_numbers(config, json);
  json["bos_token_id"] = tokens_json(config.bos_token_ids);
  json["eos_token_id"] = tokens_json(config.eos_token_ids);
  json["pad_token_id"] = config.pad_token_id ? Json(*config.pad_token_id) : Json(nullptr);
  json["dtype"] = io::long_name(extras.dtype);
  json["torch_dtype"] = io::long_name(extras.dtype);  // the name in transformers 4
  json["use_cache"] = true;
  if (extras.additional.is_object())
    for (const auto& [key, value] : extras.additional.items()) json[key] = value;
  // Sorted keys, as transformers writes them.
  return nlohmann::json(json).dump(2) + "\n";
}

}  // namespace retort::architecture
