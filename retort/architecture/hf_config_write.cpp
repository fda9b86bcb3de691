#include <algorithm>
#include <variant>

#include "retort/architecture/families.h"
#include "retort/architecture/hf_config.h"
#include "retort/architecture/hf_layers.h"
#include "retort/architecture/hf_rope.h"
#include "retort/base/error.h"

namespace retort::architecture {
namespace {

using base::Json;

Json ids_json(const std::vector<std::int32_t>& ids) {
  if (ids.empty()) return nullptr;
  return ids.size() == 1 ? Json(ids.front()) : Json(ids);
}

// What a key says of settings.
struct Teller {
  const Settings& settings;

  template <typename T>
  Json operator()(T Settings::*member) const {
    return settings.*member;
  }
  template <typename T>
  Json operator()(std::optional<T> Settings::*member) const {
    return settings.*member ? Json(*(settings.*member)) : Json();
  }
  Json operator()(std::vector<std::int32_t> Settings::*member) const { return ids_json(settings.*member); }
};

void write_names(const Family& family, bool uniform, Json& json) {
  json["architectures"] = Json::array({uniform ? family.architecture : kOwnArchitecture});
  json["model_type"] = uniform ? family.model_type : kOwnModelType;
  if (uniform) return;
  json["base_model_type"] = family.model_type;
  json["auto_map"] = own_code();
}

// Blocks of one size as every program reads them, others in Retort's own form.  No other program may take
// that for a model that it knows: it would fill in what is missing with random numbers.
Json config_json(const Family& family, const Config& config) {
  Json json = Json::object();
  const Settings settings = settings_of(family, config);
  for (const Key& key : keys_of(family)) json[key.name] = std::visit(Teller{settings}, key.member);
  write_ropes(config.ropes, family, json);
  write_names(family, config.uniform(), json);
  if (!config.uniform()) write_layers(config.blocks, json);
  json["attention_dropout"] = 0.0;
  json["use_cache"] = true;
  return json;
}

// Shapes that a class of transformers refuses, although it would compute them.
bool has_refused_shape(const Family& family, const Config& config) {
  std::int64_t heads = 0, head_dim = 0;
  for (const Block& block : config.blocks)
    if (block.attention) {
      heads = std::max(heads, block.attention->num_heads);
      head_dim = std::max(head_dim, block.attention->head_dim);
    }
  if (family.longrope_by_hidden && config.ropes.front().kind == Rope::Kind::longrope)
    return heads == 0 || config.hidden_size / heads != head_dim;
  return config.uniform() && family.heads_divide_hidden && config.hidden_size % heads != 0;
}

// A family says a configuration if it comes back from what it writes.
bool says(const Family& family, const Config& config) {
  if (has_refused_shape(family, config)) return false;
  try {
    Config again = parse_hf_config(config_json(family, config).dump(), "config.json");
    again.architecture = config.architecture;
    return again == config;
  } catch (const base::ModelError&) {
    return false;
  }
}

}  // namespace

const Family& written_family(const Config& config) {
  const Family& own = family_of(config.architecture);
  if (says(own, config)) return own;
  for (const Family* other : families())
    if (same_files(own, *other) && says(*other, config)) return *other;
  throw base::ModelError(base::join("config.json: no family computes what a ", config.architecture,
                                    " does and may have hidden_size ", config.hidden_size,
                                    " with these heads; leave heads or hidden features as they are."));
}

std::string hf_config_json(const Config& config, const HfExtras& extras) {
  Json json = config_json(written_family(config), config);
  json["dtype"] = io::long_name(extras.dtype);
  json["torch_dtype"] = io::long_name(extras.dtype);  // the name in transformers 4
  if (extras.additional.is_object())
    for (const auto& [key, value] : extras.additional.items()) json[key] = value;
  // Sorted keys, as transformers writes them.
  return nlohmann::json(json).dump(2) + "\n";
}

}  // namespace retort::architecture
