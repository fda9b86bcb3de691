#include "retort/architecture/hf_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "retort/architecture/families.h"
#include "retort/architecture/hf_keys.h"
#include "retort/architecture/hf_layers.h"
#include "retort/base/error.h"
#include "retort/io/model_directory.h"
#include "retort/io/quote.h"

namespace retort::architecture {
namespace {

using base::Json;
using base::ModelError;
using base::require;

constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;

std::string shown(const Json& value) {
  return io::quote(value.dump());
}

// Typed access to the top-level keys; null and absent are the same, as they are for transformers.
class Reader {
 public:
  Reader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  bool present(const char* key) const { return json_.contains(key); }

  std::int64_t integer(const Json& value, const char* key) const {
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() ||
                       value.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()});
    require<ModelError>(fits, where_, ": ", key, " is ", shown(value), ", expected a whole number.");
    return value.get<std::int64_t>();
  }
  std::int64_t required(const char* key) const {
    const Json* value = find(key);
    require<ModelError>(value != nullptr, where_, ": lacks ", key,
                        "; this is not the configuration of a language model.");
    return integer(*value, key);
  }
  std::optional<std::int64_t> optional(const char* key) const {
    const Json* value = find(key);
    return value == nullptr ? std::nullopt : std::optional(integer(*value, key));
  }
  double number(const Json& value, const char* key) const {
    require<ModelError>(value.is_number(), where_, ": ", key, " is ", shown(value), ", expected a number.");
    return value.get<double>();
  }
  double number_or(const char* key, double fallback) const {
    const Json* value = find(key);
    return value == nullptr ? fallback : number(*value, key);
  }
  bool flag_or(const char* key, bool fallback) const {
    const Json* value = find(key);
    require<ModelError>(value == nullptr || value->is_boolean(), where_, ": ", key, " is ",
                        value == nullptr ? "" : shown(*value), ", expected true or false.");
    return value == nullptr ? fallback : value->get<bool>();
  }
  const std::string& where() const { return where_; }
  const Json& json() const { return json_; }

 private:
  const Json& json_;
  std::string where_;
};

std::string architecture_text(const Reader& in) {
  const Json* list = in.find("architectures");
  if (list == nullptr) return "";
  require<ModelError>(list->is_array() && list->size() == 1 && list->front().is_string(), in.where(),
                      ": architectures is ", shown(*list), ", expected one of ", supported_architectures(),
                      " in a list.");
  return list->front().get<std::string>();
}

std::string text_or_empty(const Reader& in, const char* key) {
  const Json* text = in.find(key);
  require<ModelError>(text == nullptr || text->is_string(), in.where(), ": ", key, " is ",
                      text == nullptr ? "" : shown(*text), ", expected a name.");
  return text == nullptr ? "" : text->get<std::string>();
}

// Retort's own form for blocks that differ.
bool is_own_form(const Reader& in) {
  const std::string architecture = architecture_text(in);
  return architecture == kOwnArchitecture || text_or_empty(in, "model_type") == kOwnModelType;
}

const Family& find_family(const Reader& in) {
  const bool own = is_own_form(in);
  const std::string architecture = own ? "" : architecture_text(in);
  const std::string model_type = text_or_empty(in, own ? "base_model_type" : "model_type");
  require<ModelError>(!own || !model_type.empty(), in.where(),
                      ": lacks base_model_type, which says whose mathematics a ", kOwnArchitecture, " has.");
  require<ModelError>(!architecture.empty() || !model_type.empty(), in.where(),
                      ": names neither architectures nor model_type; expected one of ",
                      supported_architectures(), ".");
  for (const Family& family : families())
    if ((architecture.empty() || architecture == family.names.architecture) &&
        (model_type.empty() || model_type == family.names.model_type))
      return family;
  throw ModelError(base::join(in.where(), ": architecture ", io::quote(architecture), " of model type ",
                              io::quote(model_type), " is not supported; supported are ",
                              supported_architectures(), "."));
}

// What a refusal says: the key, its value, why.
[[noreturn]] void refuse(const Reader& in, std::string_view key, const Json& value, std::string_view reason) {
  throw ModelError(base::join(in.where(), ": ", key, " is ", shown(value), ": ", reason,
                              ", which is not supported and would change what the model computes."));
}

void refuse_unhonoured(const Reader& in) {
  for (const RefusedKey& key : refused_keys()) {
    const Json* value = in.find(key.name);
    if (value != nullptr && !key.is_neutral(*value)) refuse(in, key.name, *value, key.reason);
  }
}

void collect_notes(const Reader& in, std::vector<std::string>* notes) {
  if (notes == nullptr) return;
  for (const auto& [key, value] : in.json().items())
    if (!is_known_key(key))
      notes->push_back(base::join(in.where(), ": key ", io::quote(key), " is not known and was not used."));
  const double dropout = in.number_or("attention_dropout", 0.0);
  if (dropout != 0.0)
    notes->push_back(base::join(in.where(), ": attention_dropout ", dropout, " is not applied in training."));
}

// rope_parameters (transformers 5) or rope_scaling (4): only the plain rotation is honoured.
std::optional<double> theta_of(const Reader& in, const char* key) {
  const Json* rope = in.find(key);
  if (rope == nullptr) return std::nullopt;
  require<ModelError>(rope->is_object(), in.where(), ": ", key, " is ", shown(*rope),
                      ", expected an object.");
  std::optional<double> theta;
  for (const auto& [name, value] : rope->items()) {
    const bool type = name == "rope_type" || name == "type";
    const bool whole = name == "partial_rotary_factor" && value.is_number() && value.get<double>() == 1.0;
    if (name == "rope_theta")
      theta = in.number(value, "rope_theta");
    else if (!value.is_null() && !whole && !(type && value == "default"))
      refuse(in, base::join(key, ".", io::quote(name)), value, "a changed rotary embedding");
  }
  return theta;
}

double read_theta(const Reader& in) {
  std::optional<double> theta;
  if (const Json* plain = in.find("rope_theta")) theta = in.number(*plain, "rope_theta");
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const std::optional<double> nested = theta_of(in, key);
    require<ModelError>(!nested || !theta || *nested == *theta, in.where(), ": rope_theta is ",
                        theta.value_or(0), " at the top but ", nested.value_or(0), " in ", key,
                        "; remove the one that the model was not trained with.");
    if (nested) theta = nested;
  }
  return theta.value_or(10000.0);
}

void check_window(const Reader& in, const Family& family, std::int64_t context) {
  const bool absent = !in.present("sliding_window");
  const std::optional<std::int64_t> window =
      absent ? family.reading.default_window : in.optional("sliding_window");
  require<ModelError>(!window || *window >= context, in.where(), ": sliding_window is ",
                      absent ? "absent, which means " : "", window.value_or(0),
                      ", shorter than max_position_embeddings ", context,
                      "; attention with a window is not supported, so use a model without, or lower "
                      "max_position_embeddings to the window.");
}

std::vector<std::int32_t> read_tokens(const Reader& in, const char* key, std::int32_t fallback) {
  if (!in.present(key)) return {fallback};
  const Json* value = in.find(key);
  if (value == nullptr) return {};
  std::vector<std::int32_t> ids;
  const auto add = [&](const Json& id) {
    const std::int64_t number = in.integer(id, key);
    require<ModelError>(number >= 0 && number <= std::numeric_limits<std::int32_t>::max(), in.where(), ": ",
                        key, " holds ", number, ", expected ids of the vocabulary.");
    ids.push_back(static_cast<std::int32_t>(number));
  };
  if (value->is_array())
    for (const Json& id : *value) add(id);
  else
    add(*value);
  return ids;
}

// Old configurations write -1 for "none".
std::optional<std::int32_t> read_pad(const Reader& in) {
  const std::optional<std::int64_t> id = in.optional("pad_token_id");
  if (!id || *id == -1) return std::nullopt;
  require<ModelError>(*id >= 0 && *id <= std::numeric_limits<std::int32_t>::max(), in.where(),
                      ": pad_token_id is ", *id, ", expected an id of the vocabulary.");
  return static_cast<std::int32_t>(*id);
}

Attention read_attention(const Reader& in, const Family& family, std::int64_t hidden) {
  Attention attention;
  attention.num_heads = in.required("num_attention_heads");
  require<ModelError>(attention.num_heads > 0, in.where(), ": num_attention_heads is ", attention.num_heads,
                      ", expected at least 1.");
  attention.num_kv_heads = in.optional("num_key_value_heads").value_or(attention.num_heads);
  if (!in.present("num_key_value_heads") && family.reading.default_kv_heads > 0)
    attention.num_kv_heads = family.reading.default_kv_heads;
  const std::optional<std::int64_t> head_dim = in.optional("head_dim");
  require<ModelError>(head_dim || hidden % attention.num_heads == 0, in.where(), ": hidden_size ", hidden,
                      " is not a multiple of num_attention_heads ", attention.num_heads,
                      " and there is no head_dim.");
  attention.head_dim = head_dim.value_or(hidden / attention.num_heads);
  return attention;
}

std::vector<Block> read_blocks(const Reader& in, const Family& family, std::int64_t hidden) {
  const std::int64_t count = in.required("num_hidden_layers");
  require<ModelError>(count > 0 && count <= kMaxBlocks, in.where(), ": num_hidden_layers is ", count,
                      ", expected 1 to ", kMaxBlocks, ".");
  if (is_own_form(in)) {
    require<ModelError>(in.find("per_layer_config") == nullptr, in.where(),
                        ": per_layer_config stands beside lists of sizes, expected one of them.");
    return read_layers(in.json(), static_cast<std::size_t>(count), in.where());
  }
  const Block block{read_attention(in, family, hidden), DenseMlp{in.required("intermediate_size")}};
  std::vector<Block> blocks(static_cast<std::size_t>(count), block);
  if (const Json* layers = in.find("per_layer_config")) apply_per_layer_config(*layers, blocks, in.where());
  return blocks;
}

Json parse(std::string_view text, const std::string& where) {
  try {
    Json json = base::parse_json(text, {.max_bytes = kMaxConfigBytes});
    require<ModelError>(json.is_object(), where, ": expected a JSON object with the model's configuration.");
    return json;
  } catch (const base::JsonFault& fault) {
    throw ModelError(base::join(where, ": not sound JSON at byte ", fault.byte, ": ", fault.reason,
                                "; download or export the file again."));
  }
}

}  // namespace

Config parse_hf_config(std::string_view json_text, const std::string& where,
                       std::vector<std::string>* notes) {
  const Json json = parse(json_text, where);
  const Reader in(json, where);
  const Family& family = find_family(in);
  refuse_unhonoured(in);
  Config config;
  config.architecture = family.names.architecture;
  config.vocab_size = in.required("vocab_size");
  config.hidden_size = in.required("hidden_size");
  config.max_position_embeddings = in.required("max_position_embeddings");
  config.rms_norm_eps = in.number_or("rms_norm_eps", 1e-6);
  config.rope_theta = read_theta(in);
  config.initializer_range = in.number_or("initializer_range", 0.02);
  config.tie_word_embeddings = in.flag_or("tie_word_embeddings", false);
  config.bos_token_ids = read_tokens(in, "bos_token_id", 1);
  config.eos_token_ids = read_tokens(in, "eos_token_id", 2);
  config.pad_token_id = read_pad(in);
  config.blocks = read_blocks(in, family, config.hidden_size);
  check_window(in, family, config.max_position_embeddings);
  collect_notes(in, notes);
  validate(config, where);
  return config;
}

Config read_config(const base::Path& directory, std::vector<std::string>* notes) {
  return parse_hf_config(io::read_config_text(directory), io::name_of_config(directory), notes);
}

}  // namespace retort::architecture
