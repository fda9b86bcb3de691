#include "retort/architecture/hf_config.h"
#include "retort/architecture/hf_per_layer.h"

namespace retort::architecture {
namespace {

using base::Json;

Json tokens_json(const std::vector<std::int32_t>& ids) {
  if (ids.empty()) return nullptr;
  return ids.size() == 1 ? Json(ids.front()) : Json(ids);
}

void write_shape(const Config& config, Json& json) {
  const Block block = common_block(config.blocks);
  json["head_dim"] = block.attention->head_dim;
  json["hidden_size"] = config.hidden_size;
  json["intermediate_size"] = std::get<DenseMlp>(block.mlp).width;
  json["max_position_embeddings"] = config.max_position_embeddings;
  json["num_attention_heads"] = block.attention->num_heads;
  json["num_hidden_layers"] = config.blocks.size();
  json["num_key_value_heads"] = block.attention->num_kv_heads;
  json["tie_word_embeddings"] = config.tie_word_embeddings;
  json["vocab_size"] = config.vocab_size;
  if (const Json layers = per_layer_config(config.blocks, block); !layers.empty())
    json["per_layer_config"] = layers;
}

void write_numbers(const Config& config, Json& json) {
  json["hidden_act"] = "silu";
  json["attention_dropout"] = 0.0;
  json["initializer_range"] = config.initializer_range;
  json["rms_norm_eps"] = config.rms_norm_eps;
  json["rope_theta"] = config.rope_theta;
  json["rope_scaling"] = nullptr;
  json["rope_parameters"] = Json{{"rope_theta", config.rope_theta}, {"rope_type", "default"}};
}

void write_family(const Config& config, Json& json) {
  const bool mistral = config.architecture == "MistralForCausalLM";
  json["architectures"] = Json::array({config.architecture});
  json["model_type"] = mistral ? "mistral" : "llama";
  if (mistral) {
    json["sliding_window"] = nullptr;  // absent would mean 4096
  } else {
    json["attention_bias"] = false;
    json["mlp_bias"] = false;
    json["pretraining_tp"] = 1;
  }
}

}  // namespace

std::string hf_config_json(const Config& config, const HfExtras& extras) {
  Json json = Json::object();
  write_family(config, json);
  write_shape(config, json);
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
