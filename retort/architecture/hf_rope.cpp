#include "retort/architecture/hf_rope.h"

#include <algorithm>
#include <array>

#include "retort/base/error.h"

namespace retort::architecture {
namespace {

using base::Json;
using base::ModelError;
using base::require;
using Kind = Rope::Kind;

constexpr std::string_view kChanged = "a changed rotary embedding";
constexpr const char* kFull = "full_attention";
constexpr const char* kWindow = "sliding_attention";

struct KindName {
  const char* name;
  Kind kind;
};
constexpr std::array kKinds{KindName{"default", Kind::plain},   KindName{"linear", Kind::linear},
                            KindName{"dynamic", Kind::dynamic}, KindName{"llama3", Kind::llama3},
                            KindName{"yarn", Kind::yarn},       KindName{"longrope", Kind::longrope}};

const char* name_of(Kind kind) {
  return std::find_if(kKinds.begin(), kKinds.end(), [kind](const KindName& row) { return row.kind == kind; })
      ->name;
}

// A key of rope_parameters: which kinds have it, and how it is read and written.
struct RopeKey {
  const char* name;
  bool (*belongs)(const Rope& rope);
  bool required;
  void (*read)(const JsonReader& in, const Json& value, const char* key, Rope& rope);
  Json (*write)(const Rope& rope);  ///< null: it need not be said
};

template <auto member>
void read_number(const JsonReader& in, const Json& value, const char* key, Rope& rope) {
  rope.*member = in.number(value, key);
}
template <auto member>
void read_numbers(const JsonReader& in, const Json& value, const char* key, Rope& rope) {
  in.require_kind(value.is_array(), value, key, "a list of numbers");
  for (const Json& number : value) (rope.*member).push_back(in.number(number, key));
}
template <auto member>
Json said(const Rope& rope) {
  return rope.*member;
}
template <auto member>
Json said_if_any(const Rope& rope) {
  return rope.*member ? Json(*(rope.*member)) : Json();
}
template <Kind... kinds>
bool is(const Rope& rope) {
  return ((rope.kind == kinds) || ...);
}

bool has_original_context(const Rope& rope) {
  return is<Kind::llama3, Kind::yarn, Kind::longrope>(rope) || rope.query_growth > 0;
}

constexpr std::array kKeys{
    RopeKey{"factor", is<Kind::linear, Kind::dynamic, Kind::llama3, Kind::yarn>, true,
            read_number<&Rope::factor>, said<&Rope::factor>},
    RopeKey{"factor", is<Kind::longrope>, false, read_number<&Rope::factor>, said<&Rope::factor>},
    RopeKey{"low_freq_factor", is<Kind::llama3>, true, read_number<&Rope::low_frequency_factor>,
            said<&Rope::low_frequency_factor>},
    RopeKey{"high_freq_factor", is<Kind::llama3>, true, read_number<&Rope::high_frequency_factor>,
            said<&Rope::high_frequency_factor>},
    RopeKey{"beta_fast", is<Kind::yarn>, false, read_number<&Rope::beta_fast>, said<&Rope::beta_fast>},
    RopeKey{"beta_slow", is<Kind::yarn>, false, read_number<&Rope::beta_slow>, said<&Rope::beta_slow>},
    RopeKey{"truncate", is<Kind::yarn>, false,
            [](const JsonReader& in, const Json& value, const char* key, Rope& rope) {
              rope.truncate = in.flag(value, key);
            },
            [](const Rope& rope) { return rope.truncate ? Json() : Json(false); }},
    RopeKey{"mscale", is<Kind::yarn>, false, read_number<&Rope::mscale>, said_if_any<&Rope::mscale>},
    RopeKey{"mscale_all_dim", is<Kind::yarn>, false, read_number<&Rope::mscale_all_dim>,
            said_if_any<&Rope::mscale_all_dim>},
    RopeKey{"attention_factor", is<Kind::yarn, Kind::longrope>, false, read_number<&Rope::attention_factor>,
            said_if_any<&Rope::attention_factor>},
    RopeKey{"short_factor", is<Kind::longrope>, true, read_numbers<&Rope::short_factors>,
            said<&Rope::short_factors>},
    RopeKey{"long_factor", is<Kind::longrope>, true, read_numbers<&Rope::long_factors>,
            said<&Rope::long_factors>},
};

// What is read for all kinds alike, before the keys above.
constexpr std::array<std::string_view, 7> kOther{"rope_type",
                                                 "type",
                                                 "rope_theta",
                                                 "partial_rotary_factor",
                                                 "original_max_position_embeddings",
                                                 "llama_4_scaling_beta",
                                                 "max_position_embeddings"};

Kind kind_of(const JsonReader& in, const Family& family) {
  std::string name = in.text_or_empty("rope_type");
  if (name.empty()) name = in.text_or_empty("type");
  if (name.empty()) return Kind::plain;
  if (family.yarn_is_longrope && (name == "su" || name == "yarn")) return Kind::longrope;
  const auto found =
      std::find_if(kKinds.begin(), kKinds.end(), [&](const KindName& row) { return name == row.name; });
  if (found == kKinds.end()) in.refuse("rope_type", name, kChanged);
  return found->kind;
}

void read_keys(const JsonReader& in, Rope& rope) {
  for (const auto& [name, value] : in.json().items()) {
    if (value.is_null() || std::find(kOther.begin(), kOther.end(), name) != kOther.end()) continue;
    const auto key = std::find_if(kKeys.begin(), kKeys.end(),
                                  [&](const RopeKey& row) { return name == row.name && row.belongs(rope); });
    if (key == kKeys.end())
      in.refuse(name, value, base::join(kChanged, " that the type ", name_of(rope.kind), " does not have"));
    key->read(in, value, key->name, rope);
  }
  for (const RopeKey& key : kKeys)
    require<ModelError>(!key.required || !key.belongs(rope) || in.find(key.name) != nullptr, in.where(),
                        ": lacks ", key.name, ", which a rotary embedding of type ", name_of(rope.kind),
                        " needs.");
}

// What stands at the top of config.json and belongs to each rotary embedding.
struct AtTop {
  std::optional<double> theta, share;
  std::optional<std::int64_t> original_context;
  std::int64_t context;
};

double agreed_theta(const JsonReader& in, const AtTop& top, double otherwise) {
  const auto own = in.optional_number("rope_theta");
  require<ModelError>(!own || !top.theta || *own == *top.theta, in.where(), ": rope_theta is ",
                      own.value_or(0), ", but ", top.theta.value_or(0),
                      " at the top; remove the one that the model was not trained with.");
  return own.value_or(top.theta.value_or(otherwise));
}

Rope read_rope(const JsonReader& in, const Family& family, const AtTop& top, double theta) {
  Rope rope;
  rope.kind = kind_of(in, family);
  rope.theta = agreed_theta(in, top, theta);
  rope.rotated_share = in.optional_number("partial_rotary_factor").value_or(top.share.value_or(1));
  if (!family.partial_rotary && rope.rotated_share != 1)
    in.refuse("partial_rotary_factor", rope.rotated_share, "a rotation of a part of a head");
  rope.query_growth = in.optional_number("llama_4_scaling_beta").value_or(0);
  if (!family.queries_grow && rope.query_growth != 0)
    in.refuse("llama_4_scaling_beta", rope.query_growth, "queries that grow with the position");
  if (has_original_context(rope)) {
    const Json* own = in.find("original_max_position_embeddings");
    rope.original_context = top.original_context.value_or(
        own == nullptr ? top.context : in.integer(*own, "original_max_position_embeddings"));
  }
  rope.starts_anew = family.longrope_starts_anew && rope.kind == Kind::longrope;
  read_keys(in, rope);
  if (rope.kind == Kind::longrope && in.find("factor") == nullptr && rope.original_context > 0)
    rope.factor = static_cast<double>(top.context) / static_cast<double>(rope.original_context);
  return rope;
}

const Json* object_of(const JsonReader& in) {
  const Json* five = in.find("rope_parameters");
  const Json* four = in.find("rope_scaling");
  for (const auto& [value, key] : {std::pair(five, "rope_parameters"), std::pair(four, "rope_scaling")})
    in.require_kind(value == nullptr || value->is_object(), value == nullptr ? Json() : *value, key,
                    "an object");
  if (five == nullptr || five->empty()) return four;
  if (four == nullptr || four->empty()) return five;
  for (const auto& [key, value] : four->items()) {
    const char* name = key == "type" ? "rope_type" : key.c_str();
    const Json& full = five->contains(kFull) ? five->at(kFull) : *five;
    require<ModelError>(full.contains(name) && full.at(name) == value, in.where(), ": rope_scaling says ",
                        key, " ", shown(value), ", rope_parameters ",
                        full.contains(name) ? shown(full.at(name)) : "does not",
                        "; remove the one that the model was not trained with.");
  }
  return five;
}

// Rotary embeddings by type of layer, or as rope_scaling one that only full attention has changed.
std::vector<Rope> read_by_layer_type(const JsonReader& in, const Family& family, AtTop top) {
  static const Json kNone = Json::object();
  const Json* object = object_of(in);
  const bool nested = object != nullptr && (object->contains(kFull) || object->contains(kWindow));
  if (const Json* five = in.find("rope_parameters"); five != nullptr && !five->empty() && !nested)
    in.refuse("rope_parameters", *five, "one rotary embedding for both types of layers");
  const auto named = [&](const char* name) { return base::join("rope_parameters.", name); };
  const auto part = [&](const char* name) -> const Json& {
    if (object == nullptr) return kNone;
    if (!nested) return name == kFull ? *object : kNone;
    const auto found = object->find(name);
    if (found == object->end() || found->is_null()) return kNone;
    in.require_kind(found->is_object(), *found, named(name).c_str(), "an object");
    return *found;
  };
  if (nested)
    for (const auto& [key, value] : object->items())
      if (key != kFull && key != kWindow && !value.is_null()) in.refuse(named(key.c_str()), value, kChanged);
  if (part(kFull).value("truncate", Json(true)) != true)
    in.refuse("rope_parameters.full_attention.truncate", false,
              "a ramp that transformers itself would round");
  top.original_context.reset();  // which transformers does not read here
  AtTop of_window = top;
  of_window.theta =
      family.window_theta_key == nullptr ? std::nullopt : in.optional_number(family.window_theta_key);
  const auto where = [&](const char* name) { return base::join(in.where(), ": ", named(name)); };
  return {read_rope({part(kFull), where(kFull)}, family, top, family.rope_theta),
          read_rope({part(kWindow), where(kWindow)}, family, of_window, *family.window_theta)};
}

Json rope_json(const Rope& rope) {
  Json json{{"rope_theta", rope.theta}, {"rope_type", name_of(rope.kind)}};
  if (rope.rotated_share != 1) json["partial_rotary_factor"] = rope.rotated_share;
  if (has_original_context(rope)) json["original_max_position_embeddings"] = rope.original_context;
  if (rope.query_growth > 0) json["llama_4_scaling_beta"] = rope.query_growth;
  for (const RopeKey& key : kKeys)
    if (key.belongs(rope))
      if (const Json value = key.write(rope); !value.is_null()) json[key.name] = value;
  return json;
}

}  // namespace

std::vector<Rope> read_ropes(const JsonReader& in, const Family& family, std::int64_t context) {
  AtTop top{.theta = in.optional_number("rope_theta"),
            .share = in.optional_number("partial_rotary_factor"),
            .original_context = family.original_context,
            .context = context};
  if (const Json* original = in.find("original_max_position_embeddings"))
    top.original_context = in.integer(*original, "original_max_position_embeddings");
  if (family.window_theta) return read_by_layer_type(in, family, top);
  const Json* found = object_of(in);
  const Json object = found != nullptr         ? *found
                      : family.rope != nullptr ? base::parse_json(family.rope)
                                               : Json::object();
  return {read_rope({object, base::join(in.where(), ": rope_parameters")}, family, top, family.rope_theta)};
}

void write_ropes(const std::vector<Rope>& ropes, const Family& family, Json& config) {
  const Rope& rope = ropes.front();
  const Json whole = rope_json(rope);
  config["rope_theta"] = rope.theta;
  config["rope_scaling"] = nullptr;
  if (rope.kind != Kind::plain) {
    config["rope_scaling"] = whole;
    config["rope_scaling"].erase("rope_theta");
  }
  if (rope.rotated_share != 1) config["partial_rotary_factor"] = rope.rotated_share;
  // Some classes of transformers have a number of their own for it, which comes before any other.
  if (rope.kind == Kind::longrope) config["original_max_position_embeddings"] = rope.original_context;
  config["rope_parameters"] = whole;
  if (!family.window_theta) return;
  if (family.window_theta_key != nullptr) config[family.window_theta_key] = ropes.back().theta;
  config["rope_parameters"] = Json{{kFull, whole}, {kWindow, rope_json(ropes.back())}};
}

bool is_rope_key(std::string_view key) {
  constexpr std::array<std::string_view, 6> kTop{"rope_theta",           "rope_scaling",
                                                 "rope_parameters",      "partial_rotary_factor",
                                                 "rope_local_base_freq", "original_max_position_embeddings"};
  return std::find(kTop.begin(), kTop.end(), key) != kTop.end();
}

}  // namespace retort::architecture
