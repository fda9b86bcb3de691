#include "retort/architecture/hf_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "retort/architecture/checkpoint.h"
#include "retort/architecture/families.h"
#include "retort/architecture/hf_keys.h"
#include "retort/architecture/hf_layers.h"
#include "retort/architecture/hf_rope.h"
#include "retort/architecture/json_reader.h"
#include "retort/base/error.h"
#include "retort/io/model_directory.h"
#include "retort/io/quote.h"

namespace retort::architecture {
namespace {

using base::Json;
using base::ModelError;
using base::require;

constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;

std::string architecture_text(const JsonReader& in) {
  const Json* list = in.find("architectures");
  if (list == nullptr) return "";
  require<ModelError>(list->is_array() && list->size() == 1 && list->front().is_string(), in.where(),
                      ": architectures is ", shown(*list), ", expected one of ", supported_architectures(),
                      " in a list.");
  return list->front().get<std::string>();
}

// Retort's own form for blocks that differ.
bool is_own_form(const JsonReader& in) {
  return architecture_text(in) == kOwnArchitecture || in.text_or_empty("model_type") == kOwnModelType;
}

// ": num_experts is "8": a mixture of experts"; empty where no key says it.
std::string why_foreign(const JsonReader& in) {
  for (const RefusedKey& key : refused_keys())
    if (const Json* value = in.find(key.name);
        key.of_another_model && value != nullptr && !key.is_neutral(*value))
      return base::join(": ", key.name, " is ", shown(*value), ": ", key.reason);
  return {};
}

const Family& find_family(const JsonReader& in) {
  const bool own = is_own_form(in);
  const std::string architecture = own ? "" : architecture_text(in);
  const std::string model_type = in.text_or_empty(own ? "base_model_type" : "model_type");
  require<ModelError>(!own || !model_type.empty(), in.where(),
                      ": lacks base_model_type, which says whose mathematics a ", kOwnArchitecture, " has.");
  require<ModelError>(!architecture.empty() || !model_type.empty(), in.where(),
                      ": names neither architectures nor model_type; expected one of ",
                      supported_architectures(), ".");
  for (const Family* family : families())
    if ((architecture.empty() || architecture == family->architecture) &&
        (model_type.empty() || model_type == family->model_type))
      return *family;
  throw ModelError(base::join(in.where(), ": architecture ", io::quote(architecture), " of model type ",
                              io::quote(model_type), " is not supported", why_foreign(in), "; supported are ",
                              supported_architectures(), "."));
}

void refuse_unhonoured(const JsonReader& in, const Family& family) {
  for (const auto& [key, value] : in.json().items())
    if (const std::string reason = why_refused(family, key, value); !reason.empty())
      in.refuse(key, value, reason, remedy_of(key));
}

void collect_notes(const JsonReader& in, const Family& family, std::vector<std::string>* notes) {
  if (notes == nullptr) return;
  for (const auto& [key, value] : in.json().items())
    if (!is_known_key(family, key))
      notes->push_back(base::join(in.where(), ": key ", io::quote(key), " is not known and was not used."));
  const double dropout = in.optional_number("attention_dropout").value_or(0);
  if (dropout != 0.0)
    notes->push_back(base::join(in.where(), ": attention_dropout ", dropout, " is not applied in training."));
}

std::int32_t token_of(const JsonReader& in, const Json& value, const char* key) {
  const std::int64_t id = in.integer(value, key);
  require<ModelError>(id >= 0 && id <= std::numeric_limits<std::int32_t>::max(), in.where(), ": ", key,
                      " is ", id, ", expected an id of the vocabulary.");
  return static_cast<std::int32_t>(id);
}

// Reads a value into the member of Settings that a key names.
struct Setter {
  const JsonReader& in;
  const char* key;
  const Json& value;  ///< null only for what may be null
  Settings& settings;

  void operator()(bool Settings::*member) const { settings.*member = in.flag(value, key); }
  void operator()(std::int64_t Settings::*member) const { settings.*member = in.integer(value, key); }
  void operator()(double Settings::*member) const { settings.*member = in.number(value, key); }
  void operator()(std::string Settings::*member) const { settings.*member = in.text(value, key); }
  void operator()(std::optional<std::int64_t> Settings::*member) const {
    settings.*member = value.is_null() ? std::nullopt : std::optional(in.integer(value, key));
  }
  void operator()(std::optional<double> Settings::*member) const {
    settings.*member = value.is_null() ? std::nullopt : std::optional(in.number(value, key));
  }
  void operator()(std::vector<std::int32_t> Settings::*member) const {
    settings.*member = {};
    if (value.is_null() || value == -1) return;  // old configurations write -1 for "none"
    if (!value.is_array()) return (settings.*member).push_back(token_of(in, value, key));
    for (const Json& id : value) (settings.*member).push_back(token_of(in, id, key));
  }
  void operator()(std::optional<std::vector<std::string>> Settings::*member) const {
    settings.*member = std::nullopt;
    if (value.is_null()) return;
    in.require_kind(value.is_array(), value, key, "a list of names");
    (settings.*member).emplace();
    for (const Json& name : value) (settings.*member)->push_back(in.text(name, key));
  }
  void operator()(std::optional<std::vector<std::int64_t>> Settings::*member) const {
    settings.*member = std::nullopt;
    if (value.is_null()) return;
    in.require_kind(value.is_array(), value, key, "a list of numbers");
    (settings.*member).emplace();
    for (const Json& number : value) (settings.*member)->push_back(in.integer(number, key));
  }
};

bool may_be_null(const Key::Member& member) {
  return !std::holds_alternative<bool Settings::*>(member) &&
         !std::holds_alternative<std::int64_t Settings::*>(member) &&
         !std::holds_alternative<double Settings::*>(member) &&
         !std::holds_alternative<std::string Settings::*>(member);
}

void read_key(const JsonReader& in, const Key& key, Settings& settings) {
  const auto found = in.json().find(key.name);
  const bool said = found != in.json().end() && (!found->is_null() || may_be_null(key.member));
  require<ModelError>(said || key.absent != nullptr, in.where(), ": lacks ", key.name,
                      "; this is not the configuration of a language model.");
  const Json value = said ? *found : base::parse_json(key.absent);
  std::visit(Setter{in, key.name, value, settings}, key.member);
}

// Sizes that Retort's own form has as a list for each layer.
bool is_listed(std::string_view key) {
  return key == "num_attention_heads" || key == "num_key_value_heads" || key == "head_dim" ||
         key == "intermediate_size";
}

Settings read_settings(const JsonReader& in, const Family& family, bool own_form) {
  Settings settings;
  if (own_form) settings.num_attention_heads = settings.head_dim.emplace(2);  // of blocks that lists change
  for (const Key& key : keys_of(family))
    if (!own_form || !is_listed(key.name)) read_key(in, key, settings);
  if (settings.pad_token_id == -1) settings.pad_token_id.reset();
  if (settings.pad_token_id) (void)token_of(in, *settings.pad_token_id, "pad_token_id");
  settings.ropes = read_ropes(in, family, settings.max_position_embeddings);
  return settings;
}

void read_sizes(const JsonReader& in, bool own_form, std::vector<Block>& blocks) {
  const Json* layers = in.find("per_layer_config");
  require<ModelError>(!own_form || layers == nullptr, in.where(),
                      ": per_layer_config stands beside lists of sizes, expected one of them.");
  if (own_form) read_layers(in.json(), blocks, in.where());
  if (layers != nullptr) apply_per_layer_config(*layers, blocks, in.where());
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

const Wrapper* wrapper_of(const JsonReader& in) {
  const std::string architecture = architecture_text(in), model_type = in.text_or_empty("model_type");
  for (const Wrapper& wrapper : wrappers())
    if ((architecture.empty() || architecture == wrapper.architecture) && model_type == wrapper.model_type)
      return &wrapper;
  return nullptr;
}

// The configuration of a model of text alone, of one that is more than that.
Json language_part(const Json& json, const std::string& where, std::vector<std::string>* notes) {
  const JsonReader in(json, where);
  const Json* text = in.find("text_config");
  const Wrapper* wrapper = text == nullptr ? nullptr : wrapper_of(in);
  if (wrapper == nullptr) return json;
  in.require_kind(text->is_object(), *text, "text_config", "an object");
  Json part = *text;
  part.erase("architectures");
  if (!part.contains("model_type")) part["model_type"] = wrapper->text_model_type;
  for (const char* key : {"tie_word_embeddings", "bos_token_id", "eos_token_id", "pad_token_id", "dtype",
                          "torch_dtype", "quantization_config", "compression_config"})
    if (const Json* value = in.find(key)) part[key] = *value;
  if (notes != nullptr)
    notes->push_back(
        base::join(where, ": of a ", wrapper->architecture,
                   " the language part is read and written; what else it takes in is left out."));
  return part;
}

}  // namespace

Config parse_hf_config(std::string_view json_text, const std::string& where,
                       std::vector<std::string>* notes) {
  const Json json = language_part(parse(json_text, where), where, notes);
  const JsonReader in(json, where);
  const Family& family = find_family(in);
  refuse_unhonoured(in, family);
  const bool own_form = is_own_form(in);
  Config config = config_of(family, read_settings(in, family, own_form), where);
  read_sizes(in, own_form, config.blocks);
  collect_notes(in, family, notes);
  validate(config, where);
  return config;
}

namespace {

// As transformers 5 has it: a head whose values are not those of the embedding is a head.
bool is_untied_by_weights(const base::Path& directory) {
  if (io::is_gguf(directory)) return false;  // tied are those without a head
  try {
    return has_own_head(io::ModelDirectory::open(directory));
  } catch (const base::Error&) {
    return false;  // a configuration without sound weights; whoever reads them says so
  }
}

}  // namespace

Config read_config(const base::Path& directory, std::vector<std::string>* notes) {
  Config config = parse_hf_config(io::read_config_text(directory), io::name_of_config(directory), notes);
  if (!config.tie_word_embeddings || !is_untied_by_weights(directory)) return config;
  config.tie_word_embeddings = false;
  if (notes != nullptr)
    notes->push_back(base::join(io::name_of_config(directory),
                                ": tie_word_embeddings is true, but lm_head.weight differs from the "
                                "embedding; the head is read as it is, as "
                                "transformers 5 does; set the key to false."));
  return config;
}

}  // namespace retort::architecture
