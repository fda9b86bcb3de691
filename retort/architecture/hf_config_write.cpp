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

void write_names(const WrittenForm& form, Json& json) {
  const Family& family = *form.family;
  json["architectures"] = Json::array({form.is_own ? kOwnArchitecture : family.architecture});
  json["model_type"] = form.is_own ? kOwnModelType : family.model_type;
  if (!form.is_own) return;
  json["base_model_type"] = family.model_type;
  json["auto_map"] = own_code();
}

// No other program may take the own form for a model that it knows: it would fill in what is missing with
// random numbers.
Json config_json(const WrittenForm& form, const Config& config) {
  const Family& family = *form.family;
  Json json = Json::object();
  const Settings settings = settings_of(family, config);
  for (const Key& key : keys_of(family)) json[key.name] = std::visit(Teller{settings}, key.member);
  write_ropes(config.ropes, family, json);
  write_names(form, json);
  if (form.is_own) write_layers(config.blocks, json);
  json["attention_dropout"] = 0.0;
  json["use_cache"] = true;
  return json;
}

// Shapes that a class of transformers refuses, although it would compute them.  The code beside the own form
// (modeling_retort.py) shows it a number of heads that it takes, where there is one.
bool has_refused_shape(const WrittenForm& form, const Config& config) {
  const auto attends = [](const Block& block) { return block.attention.has_value(); };
  const auto block = std::ranges::find_if(config.blocks, attends);
  if (block == config.blocks.end()) return !form.is_own;
  const std::int64_t head_dim = block->attention->head_dim, hidden = config.hidden_size;
  const std::int64_t heads =
      form.is_own ? std::max<std::int64_t>(1, hidden / head_dim) : block->attention->num_heads;
  if (form.family->longrope_by_hidden && config.ropes.front().kind == Rope::Kind::longrope)
    return hidden / heads != head_dim;
  return !form.is_own && form.family->heads_divide_hidden && hidden % heads != 0;
}

// A form says a configuration if it comes back from what is written.
bool says(const WrittenForm& form, const Config& config) {
  if (has_refused_shape(form, config)) return false;
  try {
    Config again = parse_hf_config(config_json(form, config).dump(), "config.json");
    again.architecture = config.architecture;
    return again == config;
  } catch (const base::ModelError&) {
    return false;
  }
}

// The model's own family first; null: none.
const Family* family_that_says(const Config& config, bool in_own_form) {
  const Family& own = family_of(config.architecture);
  if (says({&own, in_own_form}, config)) return &own;
  for (const Family* other : families())
    if (same_files(own, *other) && says({other, in_own_form}, config)) return other;
  return nullptr;
}

[[noreturn]] void refuse_unsayable(const Config& config) {
  throw base::ModelError(base::join("config.json: no family computes what a ", config.architecture,
                                    " does and may have hidden_size ", config.hidden_size,
                                    " with these heads; leave heads or hidden features as they are."));
}

}  // namespace

const Family& stock_family(const Config& config) {
  if (config.uniform())
    if (const Family* family = family_that_says(config, false)) return *family;
  refuse_unsayable(config);
}

WrittenForm written_form(const Config& config) {
  if (config.uniform())
    if (const Family* family = family_that_says(config, false)) return {family, false};
  if (const Family* family = family_that_says(config, true)) return {family, true};
  refuse_unsayable(config);
}

std::string hf_config_json(const Config& config, const HfExtras& extras) {
  Json json = config_json(written_form(config), config);
  json["dtype"] = io::long_name(extras.dtype);
  json["torch_dtype"] = io::long_name(extras.dtype);  // the name in transformers 4
  if (extras.additional.is_object())
    for (const auto& [key, value] : extras.additional.items()) json[key] = value;
  // Sorted keys, as transformers writes them.
  return nlohmann::json(json).dump(2) + "\n";
}

}  // namespace retort::architecture
