#include "retort/io/gguf_config.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "retort/base/error.h"
#include "retort/io/quote.h"

namespace retort::io {
namespace {

using base::Json;
using base::ModelError;
using base::require;

constexpr std::string_view kPrefix = "llama.";

// What a key may be without changing the mathematics.
enum class Harmless { never, zero, one, is_true, is_false };

struct RefusedKey {
  std::string_view key;  // after "llama."
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
    RefusedKey{"rope.scaling.factor", Harmless::one, "a scaled rotary embedding"},
    RefusedKey{"rope.scaling.attn_factor", Harmless::one, "a scaled rotary embedding"},
};

// Honoured, or without influence on what is computed.
constexpr std::array<std::string_view, 19> kKnown{"block_count",
                                                  "context_length",
                                                  "embedding_length",
                                                  "feed_forward_length",
                                                  "attention.head_count",
                                                  "attention.head_count_kv",
                                                  "attention.key_length",
                                                  "attention.value_length",
                                                  "attention.layer_norm_rms_epsilon",
                                                  "attention.sliding_window",
                                                  "rope.freq_base",
                                                  "rope.dimension_count",
                                                  "rope.scaling.type",
                                                  "rope.scaling.original_context_length",
                                                  "rope.scaling.finetuned",
                                                  "vocab_size",
                                                  "expert_used_count",
                                                  "tensor_data_layout",
                                                  "leading_dense_block_count"};

std::string key_of(std::string_view key) {
  return std::string(kPrefix).append(key);
}

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

void refuse_foreign(const MetadataReader& in) {
  const std::string architecture = in.text("general.architecture").value_or("");
  require<ModelError>(architecture == "llama", in.where(), ": general.architecture is ", quote(architecture),
                      ", expected \"llama\"; use a model of the Llama family.");
  const std::string kind = in.text("general.type").value_or("model");
  require<ModelError>(kind == "model", in.where(), ": general.type is ", quote(kind),
                      ", expected \"model\"; give the file of the model itself.");
}

void refuse_unhonoured(const MetadataReader& in) {
  for (const RefusedKey& refused : kRefused) {
    const auto found = in.all().find(key_of(refused.key));
    if (found == in.all().end() || is_harmless(found->second, refused.harmless)) continue;
    throw ModelError(base::join(in.where(), ": metadata ", quote(found->first), " means ", refused.means,
                                ", which is not supported; use a model without it."));
  }
  const std::string scaling = in.text(key_of("rope.scaling.type")).value_or("none");
  require<ModelError>(scaling == "none", in.where(), ": llama.rope.scaling.type is ", quote(scaling),
                      ", expected \"none\"; a scaled rotary embedding is not supported.");
}

std::int64_t read_head_dim(const MetadataReader& in, std::int64_t hidden, std::int64_t heads) {
  const auto key_length = in.count(key_of("attention.key_length"));
  require<ModelError>(key_length || hidden % heads == 0, in.where(), ": llama.embedding_length ", hidden,
                      " is not a multiple of llama.attention.head_count ", heads,
                      " and there is no llama.attention.key_length.");
  const std::int64_t head_dim = key_length.value_or(hidden / heads);
  const std::int64_t value_length = in.count(key_of("attention.value_length")).value_or(head_dim);
  require<ModelError>(value_length == head_dim, in.where(), ": llama.attention.value_length is ",
                      value_length, ", expected ", head_dim,
                      " as that of the keys; other widths are not supported.");
  const std::int64_t rotated = in.count(key_of("rope.dimension_count")).value_or(head_dim);
  require<ModelError>(rotated == head_dim, in.where(), ": llama.rope.dimension_count is ", rotated,
                      ", expected ", head_dim,
                      ", the width of a head; a rotation of a part of a head is not supported.");
  return head_dim;
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

// A note for the reader of config.json, who names keys that are not known.
void add_unknown_keys(const MetadataReader& in, Json& config) {
  for (const auto& [key, value] : in.all()) {
    if (!key.starts_with(kPrefix)) continue;
    const std::string_view name = std::string_view(key).substr(kPrefix.size());
    const auto refused = [name](const RefusedKey& row) { return row.key == name; };
    if (std::find(kKnown.begin(), kKnown.end(), name) == kKnown.end() &&
        std::none_of(kRefused.begin(), kRefused.end(), refused) && !value.is_array())
      config[key] = value;
  }
}

}  // namespace

GgufHeads read_gguf_heads(const MetadataReader& in) {
  refuse_foreign(in);
  const std::int64_t query = in.required_count(key_of("attention.head_count"));
  const std::int64_t key = in.count(key_of("attention.head_count_kv")).value_or(query);
  require<ModelError>(query > 0 && key > 0, in.where(), ": has ", query, " query and ", key,
                      " key heads, expected at least 1 of each.");
  return {query, key};
}

std::string gguf_config_json(const MetadataReader& in, const GgufShape& shape) {
  const GgufHeads heads = read_gguf_heads(in);
  refuse_unhonoured(in);
  const std::int64_t hidden = in.required_count(key_of("embedding_length"));
  const auto epsilon = in.number(key_of("attention.layer_norm_rms_epsilon"));
  require<ModelError>(
      epsilon.has_value(), in.where(),
      ": has no metadata \"llama.attention.layer_norm_rms_epsilon\"; convert the model again.");
  Json config = {{"architectures", {"LlamaForCausalLM"}},
                 {"model_type", "llama"},
                 {"vocab_size", shape.vocab_size},
                 {"hidden_size", hidden},
                 {"intermediate_size", in.required_count(key_of("feed_forward_length"))},
                 {"num_hidden_layers", in.required_count(key_of("block_count"))},
                 {"num_attention_heads", heads.query},
                 {"num_key_value_heads", heads.key},
                 {"head_dim", read_head_dim(in, hidden, heads.query)},
                 {"max_position_embeddings", in.required_count(key_of("context_length"))},
                 {"rms_norm_eps", *epsilon},
                 {"rope_theta", in.number(key_of("rope.freq_base")).value_or(10000.0)},
                 {"hidden_act", "silu"},
                 {"tie_word_embeddings", shape.tied},
                 {"dtype", long_name(shape.dtype)}};
  if (const auto window = in.count(key_of("attention.sliding_window")); window && *window > 0)
    config["sliding_window"] = *window;
  add_token_ids(in, config);
  add_unknown_keys(in, config);
  return config.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace retort::io
