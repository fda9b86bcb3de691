#include "retort/io/gguf_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>
#include <string_view>

#include "retort/base/error.h"
#include "retort/io/quote.h"

namespace retort::io {
namespace {

using base::Json;
using base::ModelError;
using base::require;

// What a key may be without changing the mathematics.
enum class Harmless { never, zero, one, is_true, is_false };

struct RefusedKey {
  std::string_view key;  // after the name of the architecture and a dot
  Harmless harmless;
  const char* means;
};

constexpr std::array kRefused{
    RefusedKey{"expert_count", Harmless::zero, "a mixture of experts"},
    RefusedKey{"use_parallel_residual", Harmless::is_false, "blocks whose halves run in parallel"},
    RefusedKey{"attention.causal", Harmless::is_true, "attention that looks ahead"},
    RefusedKey{"attention.clamp_kqv", Harmless::zero, "clamped attention"},
    RefusedKey{"attention.max_alibi_bias", Harmless::zero, "another position encoding"},
    RefusedKey{"attention.scale", Harmless::never, "a scaling factor"},
    RefusedKey{"attention.temperature_scale", Harmless::never, "a scaling factor"},
    RefusedKey{"attention.layer_norm_epsilon", Harmless::never, "another normalisation"},
    RefusedKey{"attn_logit_softcapping", Harmless::zero, "soft-capping"},
    RefusedKey{"final_logit_softcapping", Harmless::zero, "soft-capping"},
    RefusedKey{"embedding_scale", Harmless::one, "a scaling factor"},
    RefusedKey{"residual_scale", Harmless::one, "a scaling factor"},
    RefusedKey{"logit_scale", Harmless::one, "a scaling factor"},
    RefusedKey{"rope.scale_linear", Harmless::one, "a scaled rotary embedding"},
    RefusedKey{"rope.scaling.attn_factor", Harmless::one, "a scaled rotary embedding"},
    RefusedKey{"rope.scaling.yarn_ext_factor", Harmless::one, "a scaled rotary embedding"},
    RefusedKey{"rope.scaling.yarn_attn_factor", Harmless::one, "a scaled rotary embedding"},
    RefusedKey{"rope.scaling.yarn_log_multiplier", Harmless::never, "a scaled rotary embedding"},
};

// Honoured, or without influence on what is computed.
constexpr std::array<std::string_view, 24> kKnown{"block_count",
                                                  "context_length",
                                                  "embedding_length",
                                                  "feed_forward_length",
                                                  "attention.head_count",
                                                  "attention.head_count_kv",
                                                  "attention.key_length",
                                                  "attention.value_length",
                                                  "attention.layer_norm_rms_epsilon",
                                                  "attention.sliding_window",
                                                  "attention.sliding_window_pattern",
                                                  "rope.freq_base_swa",
                                                  "rope.freq_base",
                                                  "rope.dimension_count",
                                                  "rope.scaling.type",
                                                  "rope.scaling.factor",
                                                  "rope.scaling.yarn_beta_fast",
                                                  "rope.scaling.yarn_beta_slow",
                                                  "rope.scaling.original_context_length",
                                                  "rope.scaling.finetuned",
                                                  "vocab_size",
                                                  "expert_used_count",
                                                  "tensor_data_layout",
                                                  "leading_dense_block_count"};

// Metadata under the prefix of the file's architecture.
class Keys {
 public:
  explicit Keys(const MetadataReader& in) : in_(in), architecture_(gguf_architecture(in)) {}

  const MetadataReader& in() const { return in_; }
  const GgufArchitecture& architecture() const { return architecture_; }
  std::string of(std::string_view key) const { return base::join(architecture_.name, ".", key); }
  std::optional<std::int64_t> count(std::string_view key) const { return in_.count(of(key)); }
  /// A number for each block, whether the file has a list or one number for all.  Throws where it has
  /// neither.
  std::vector<std::int64_t> counts(std::string_view key, std::int64_t blocks) const {
    return architecture_.is_by_block && in_.is_list(of(key))
               ? in_.counts(of(key), blocks)
               : std::vector(static_cast<std::size_t>(blocks), required_count(key));
  }
  std::int64_t required_count(std::string_view key) const { return in_.required_count(of(key)); }
  std::optional<double> number(std::string_view key) const { return in_.number(of(key)); }
  bool contains(std::string_view key) const { return in_.contains(of(key)); }
  std::optional<std::string> text(std::string_view key) const { return in_.text(of(key)); }

 private:
  const MetadataReader& in_;
  const GgufArchitecture& architecture_;
};

bool is_harmless(const Json& value, Harmless harmless) {
  const bool number = value.is_number();
  switch (harmless) {
    case Harmless::zero:
      return number && value.get<double>() == 0;
    case Harmless::one:
      return number && value.get<double>() == 1;
    case Harmless::is_true:
      return value.is_boolean() && value.get<bool>();
    case Harmless::is_false:
      return value.is_boolean() && !value.get<bool>();
    case Harmless::never:
      return false;
  }
  return false;
}

bool is_longrope(const GgufShape& shape) {
  return !shape.long_divisors.empty() || !shape.short_divisors.empty();
}

bool is_yarn(const Keys& keys) {
  return keys.text("rope.scaling.type") == "yarn" && keys.number("rope.scaling.factor").value_or(1) != 1;
}

bool is_honoured(const Keys& keys, const GgufShape& shape, std::string_view key) {
  const GgufArchitecture& architecture = keys.architecture();
  if (key == "rope.scaling.attn_factor") return is_longrope(shape) || is_yarn(keys);
  return (architecture.soft_caps && key.ends_with("_softcapping")) ||
         (architecture.final_cap && key == "final_logit_softcapping");
}

void refuse_unhonoured(const Keys& keys, const GgufShape& shape) {
  const MetadataReader& in = keys.in();
  for (const RefusedKey& refused : kRefused) {
    const auto found = in.all().find(keys.of(refused.key));
    if (is_honoured(keys, shape, refused.key)) continue;
    if (found == in.all().end() || is_harmless(found->second, refused.harmless)) continue;
    throw ModelError(base::join(in.where(), ": metadata ", quote(found->first), " means ", refused.means,
                                ", which is not supported; use a model without it."));
  }
}

std::int64_t read_head_dim(const Keys& keys, std::int64_t hidden, std::int64_t heads) {
  const std::string& where = keys.in().where();
  const auto key_length = keys.count("attention.key_length");
  require<ModelError>(key_length || hidden % heads == 0, where, ": ", keys.of("embedding_length"), " ",
                      hidden, " is not a multiple of ", keys.of("attention.head_count"), " ", heads,
                      " and there is no ", keys.of("attention.key_length"), ".");
  const std::int64_t head_dim = key_length.value_or(hidden / heads);
  const std::int64_t value_length = keys.count("attention.value_length").value_or(head_dim);
  require<ModelError>(value_length == head_dim, where, ": ", keys.of("attention.value_length"), " is ",
                      value_length, ", expected ", head_dim,
                      " as that of the keys; other widths are not supported.");
  const std::int64_t rotated = keys.count("rope.dimension_count").value_or(head_dim);
  require<ModelError>(rotated == head_dim || keys.architecture().fused, where, ": ",
                      keys.of("rope.dimension_count"), " is ", rotated, ", expected ", head_dim,
                      ", the width of a head; a rotation of a part of a head is not supported.");
  return head_dim;
}

// The embedding that Llama 3.1 and later have; a file keeps only what its angles are divided by.
constexpr Llama3Bounds kLlama31{};

Json llama3_scaling(const Keys& keys, double theta, std::span<const float> divisors) {
  const double factor = *std::max_element(divisors.begin(), divisors.end());
  const auto pairs = static_cast<double>(divisors.size());
  for (std::size_t i = 0; i < divisors.size(); ++i) {
    const double wanted = llama3_divisor(std::pow(theta, -static_cast<double>(i) / pairs), factor, kLlama31);
    require<ModelError>(std::abs(divisors[i] - wanted) <= 1e-4 * wanted, keys.in().where(),
                        ": tensor \"rope_freqs.weight\" divides angle ", i, " by ", divisors[i],
                        ", expected ", wanted,
                        " as in Llama 3.1; another scaled rotary embedding is not supported.");
  }
  return {{"rope_type", "llama3"},
          {"factor", factor},
          {"low_freq_factor", kLlama31.low},
          {"high_freq_factor", kLlama31.high},
          {"original_max_position_embeddings", static_cast<std::int64_t>(kLlama31.context)}};
}

// That of Phi-3, whose factors depend on the length of a text.
Json longrope_scaling(const Keys& keys, const GgufShape& shape) {
  Json scaling = {{"rope_type", "longrope"},
                  {"short_factor", shape.short_divisors},
                  {"long_factor", shape.long_divisors}};
  if (const auto factor = keys.number("rope.scaling.attn_factor")) scaling["attention_factor"] = *factor;
  return scaling;
}

// What cos and sin of a yarn are multiplied by beside rope.scaling.attn_factor.
double yarn_factor_of_length(double factor) {
  return factor <= 1 ? 1 : 0.1 * std::log(factor) + 1;
}

// rope_scaling; null where there is none.
Json read_scaling(const Keys& keys, double theta, const GgufShape& shape) {
  if (is_longrope(shape)) return longrope_scaling(keys, shape);
  const std::span<const float> divisors = shape.rope_divisors;
  const std::string type = keys.text("rope.scaling.type").value_or("none");
  const double factor = keys.number("rope.scaling.factor").value_or(1);
  const bool known = type == "none" || type == "linear" || type == "yarn";
  require<ModelError>(
      known && (type == "none" || divisors.empty()), keys.in().where(), ": ", keys.of("rope.scaling.type"),
      " is ", quote(type),
      ", expected \"none\", \"linear\" or \"yarn\" and no tensor \"rope_freqs.weight\" beside "
      "it; another scaled rotary embedding is not supported.");
  if (!divisors.empty()) return llama3_scaling(keys, theta, divisors);
  if (type == "none" || factor == 1) return {};
  Json scaling = {{"rope_type", type}, {"factor", factor}};
  if (type != "yarn") return scaling;
  for (const char* key : {"beta_fast", "beta_slow"})
    if (const auto beta = keys.number(base::join("rope.scaling.yarn_", key))) scaling[key] = *beta;
  scaling["original_max_position_embeddings"] = keys.required_count("rope.scaling.original_context_length");
  if (const auto times = keys.number("rope.scaling.attn_factor"))
    scaling["attention_factor"] = *times * yarn_factor_of_length(factor);
  return scaling;
}

// An id, null where there is none.
Json token_id(const MetadataReader& in, std::string_view name, Json otherwise) {
  const auto id = in.count(base::join("tokenizer.ggml.", name, "_token_id"));
  return id ? Json(*id) : otherwise;
}

// End of text first, then end of turn and of message where the file has them.
Json end_ids(const MetadataReader& in, Json otherwise) {
  Json ids = Json::array();
  for (const char* name : {"eos", "eot", "eom"}) {
    const Json id = token_id(in, name, std::string_view(name) == "eos" ? otherwise : Json());
    if (!id.is_null() && std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  if (ids.empty()) return {};
  return ids.size() == 1 ? ids.front() : ids;
}

// Where the file says none, the ids of SentencePiece's Llama vocabulary, and none for other tokenizers.
void add_token_ids(const MetadataReader& in, Json& config) {
  const bool pieces = in.text("tokenizer.ggml.model").value_or("") == "llama";
  config["bos_token_id"] = token_id(in, "bos", pieces ? Json(1) : Json());
  config["eos_token_id"] = end_ids(in, pieces ? Json(2) : Json());
  config["pad_token_id"] = token_id(in, "padding", {});
}

void add_windows(const Keys& keys, Json& config) {
  if (const auto window = keys.count("attention.sliding_window"); window && *window > 0)
    config["sliding_window"] = *window;
  if (const auto theta = keys.number("rope.freq_base_swa")) config["rope_local_base_freq"] = *theta;
  const auto pattern = keys.in().all().find(keys.of("attention.sliding_window_pattern"));
  if (pattern == keys.in().all().end()) return;
  if (!pattern->second.is_array()) {
    config["sliding_window_pattern"] = *keys.count("attention.sliding_window_pattern");
    return;
  }
  require<ModelError>(pattern->second.size() <= kMaxGgufListed, keys.in().where(), ": metadata ",
                      quote(pattern->first), " has ", pattern->second.size(), " entries, expected at most ",
                      kMaxGgufListed, "; convert the model again.");
  for (const Json& windowed : pattern->second)
    config["layer_types"].push_back(windowed == true || windowed == 1 ? "sliding_attention"
                                                                      : "full_attention");
}

// What is done to scores and logits, and the activation that comes with it.
void add_scores(const Keys& keys, Json& config) {
  const GgufArchitecture& architecture = keys.architecture();
  config[architecture.norms_around ? "hidden_activation" : "hidden_act"] =
      architecture.norms_around ? "gelu_pytorch_tanh" : "silu";
  const auto width = config.at("head_dim").get<std::int64_t>();
  if (architecture.blocks_of_largest > 0)
    config["query_pre_attn_scalar"] = config.at("num_hidden_layers") == architecture.blocks_of_largest
                                          ? config.at("hidden_size").get<std::int64_t>() /
                                                config.at("num_attention_heads").get<std::int64_t>()
                                          : width;
  if (architecture.soft_caps)
    for (const char* cap : {"attn_logit_softcapping", "final_logit_softcapping"})
      if (const auto value = keys.number(cap)) config[cap] = *value;
  if (architecture.final_cap)
    if (const auto cap = keys.number("final_logit_softcapping"); cap && *cap != 0)
      config["final_logit_softcapping"] = *cap;
}

// Of Phi-3, whose positions may turn a part of each head.
void add_turned_part(const Keys& keys, Json& config) {
  if (!keys.architecture().fused) return;
  const auto width = config.at("head_dim").get<std::int64_t>();
  const auto rotated = keys.count("rope.dimension_count").value_or(width);
  if (rotated != width)
    config["partial_rotary_factor"] = static_cast<double>(rotated) / static_cast<double>(width);
  if (const auto context = keys.count("rope.scaling.original_context_length"))
    config["original_max_position_embeddings"] = *context;
}

// A note for the reader of config.json, who names keys that are not known.
void add_unknown_keys(const Keys& keys, Json& config) {
  const std::string prefix = keys.of("");
  // Certainly new, as no other key has the prefix: Json looks through all members otherwise.
  auto& members = config.get_ref<Json::object_t&>();
  for (const auto& [key, value] : keys.in().all()) {
    if (!key.starts_with(prefix)) continue;
    const std::string_view name = std::string_view(key).substr(prefix.size());
    const auto refused = [name](const RefusedKey& row) { return row.key == name; };
    if (std::find(kKnown.begin(), kKnown.end(), name) == kKnown.end() &&
        std::none_of(kRefused.begin(), kRefused.end(), refused))
      members.emplace_back(key, value.is_array() ? Json() : value);  // the name is what is told
  }
}

}  // namespace

double llama3_divisor(double angle, double factor, const Llama3Bounds& bounds) {
  const double wavelength = 2 * std::numbers::pi / angle;
  if (wavelength < bounds.context / bounds.high) return 1;
  if (wavelength > bounds.context / bounds.low) return factor;
  const double share = (bounds.context / wavelength - bounds.low) / (bounds.high - bounds.low);
  return 1 / ((1 - share) / factor + share);
}

const GgufArchitecture& gguf_architecture(const MetadataReader& in) {
  const std::string name = in.text("general.architecture").value_or("");
  std::string supported;
  for (const GgufArchitecture& architecture : kGgufArchitectures) {
    if (architecture.name == name) return architecture;
    supported += base::join(supported.empty() ? "" : ", ", quote(architecture.name));
  }
  throw ModelError(base::join(in.where(), ": general.architecture is ", quote(name), ", expected one of ",
                              supported, "; use a model of one of them."));
}

GgufHeads read_gguf_heads(const MetadataReader& in) {
  const Keys keys(in);
  const std::string kind = in.text("general.type").value_or("model");
  require<ModelError>(kind == "model", in.where(), ": general.type is ", quote(kind),
                      ", expected \"model\"; give the file of the model itself.");
  const std::int64_t blocks = keys.required_count("block_count");
  require<ModelError>(blocks <= std::int64_t{kMaxGgufListed}, in.where(), ": has ", blocks,
                      " blocks, expected at most ", kMaxGgufListed, ".");
  GgufHeads heads{keys.counts("attention.head_count", blocks), {}};
  heads.key =
      keys.contains("attention.head_count_kv") ? keys.counts("attention.head_count_kv", blocks) : heads.query;
  for (std::size_t i = 0; i < heads.query.size(); ++i) {
    const std::int64_t query = heads.query[i], key = heads.key[i];
    const bool none = keys.architecture().is_by_block && query == 0 && key == 0;
    require<ModelError>(none || (query > 0 && key > 0), in.where(), ": has ", query, " query and ", key,
                        " key heads in block ", i, ", expected at least 1 of each.");
  }
  return heads;
}

// The first that there is; 0: no block has attention.
std::int64_t first_of(const std::vector<std::int64_t>& numbers) {
  const auto found = std::ranges::find_if(numbers, [](std::int64_t number) { return number > 0; });
  return found == numbers.end() ? 0 : *found;
}

// Blocks of several sizes, in Retort's own form: a list for what differs.
void add_lists(const Keys& keys, const GgufHeads& heads, std::int64_t head_dim, Json& config) {
  if (!keys.architecture().is_by_block) return;
  Json head_dims = Json::array();
  for (const std::int64_t query : heads.query) head_dims.push_back(query > 0 ? head_dim : 0);
  config["model_type"] = "retort";
  config["base_model_type"] = keys.architecture().model_type;
  config["num_attention_heads"] = heads.query;
  config["num_key_value_heads"] = heads.key;
  config["head_dim"] = head_dims;
  config["intermediate_size"] = keys.counts("feed_forward_length", std::ssize(heads.query));
}

std::string gguf_config_json(const MetadataReader& in, const GgufShape& shape) {
  const GgufHeads heads = read_gguf_heads(in);
  const Keys keys(in);
  refuse_unhonoured(keys, shape);
  const std::int64_t hidden = keys.required_count("embedding_length");
  const auto epsilon = keys.number("attention.layer_norm_rms_epsilon");
  require<ModelError>(epsilon.has_value(), in.where(), ": has no metadata \"",
                      keys.of("attention.layer_norm_rms_epsilon"), "\"; convert the model again.");
  const double theta = keys.number("rope.freq_base").value_or(10000.0);
  const std::int64_t blocks = std::ssize(heads.query), query = first_of(heads.query);
  require<ModelError>(query > 0, in.where(),
                      ": has no block with attention, expected one; convert the model again.");
  const std::int64_t head_dim = read_head_dim(keys, hidden, query);
  Json config = {{"architectures", {keys.architecture().hugging_face}},
                 {"model_type", keys.architecture().model_type},
                 {"vocab_size", shape.vocab_size},
                 {"hidden_size", hidden},
                 {"intermediate_size", keys.counts("feed_forward_length", blocks).front()},
                 {"num_hidden_layers", blocks},
                 {"num_attention_heads", query},
                 {"num_key_value_heads", first_of(heads.key)},
                 {"head_dim", head_dim},
                 {"max_position_embeddings", keys.required_count("context_length")},
                 {"rms_norm_eps", *epsilon},
                 {"rope_theta", theta},
                 {"rope_scaling", read_scaling(keys, theta, shape)},
                 {"tie_word_embeddings", shape.tied},
                 {"dtype", long_name(shape.dtype)}};
  add_windows(keys, config);
  add_scores(keys, config);
  add_turned_part(keys, config);
  add_token_ids(in, config);
  add_lists(keys, heads, head_dim, config);
  add_unknown_keys(keys, config);
  return config.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace retort::io
