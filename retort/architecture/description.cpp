#include "retort/architecture/description.h"

#include <algorithm>
#include <functional>

#include "retort/architecture/families.h"
#include "retort/base/error.h"

namespace retort::architecture {
namespace {

// Phrases of a sentence.
class Phrases {
 public:
  template <typename... Parts>
  void add(bool said, const Parts&... parts) {
    if (said) text_ += base::join(text_.empty() ? "" : "; ", parts...);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string scaling_of(const Rope& rope) {
  switch (rope.kind) {
    case Rope::Kind::plain:
      return "";
    case Rope::Kind::linear:
      return base::join(", linear by ", rope.factor);
    case Rope::Kind::dynamic:
      return base::join(", dynamic by ", rope.factor);
    case Rope::Kind::llama3:
      return base::join(", llama3 by ", rope.factor, " beyond ", rope.original_context, " tokens");
    case Rope::Kind::yarn:
      return base::join(", yarn by ", rope.factor, " beyond ", rope.original_context, " tokens");
    case Rope::Kind::longrope:
      return base::join(", longrope beyond ", rope.original_context, " tokens");
  }
  return "";
}

// "all layers", "3 of 4 layers".
std::string layers_with(const Config& config, const std::function<bool(const AttentionKind&)>& has) {
  std::int64_t all = 0, some = 0;
  for (const Block& block : config.blocks)
    if (block.attention) {
      ++all;
      some += has(block.attention->kind);
    }
  if (some == 0) return "";
  return some == all ? "all layers" : base::join(some, " of ", all, " layers");
}

std::string positions(const Config& config) {
  Phrases phrases;
  for (std::size_t i = 0; i < config.ropes.size(); ++i) {
    const Rope& rope = config.ropes[i];
    const auto where = layers_with(config, [i](const AttentionKind& kind) { return kind.rope == i; });
    if (where.empty()) continue;
    const std::string share =
        rope.rotated_share == 1 ? "" : base::join(" of ", rope.rotated_share, " of each head");
    phrases.add(true, "rotary", share, ", theta ", rope.theta, scaling_of(rope), ", in ", where);
    phrases.add(rope.query_growth > 0, "queries grow with the position");
  }
  const auto none = layers_with(config, [](const AttentionKind& kind) { return !kind.rope; });
  phrases.add(!none.empty(), "none in ", none);
  return phrases.text();
}

std::string attention(const Config& config) {
  Phrases phrases;
  const auto first = std::find_if(config.blocks.begin(), config.blocks.end(),
                                  [](const Block& block) { return block.attention.has_value(); });
  if (first == config.blocks.end()) return "none";
  const AttentionKind& kind = first->attention->kind;
  phrases.add(kind.query_key_value_bias, "biases of q, k and v");
  phrases.add(kind.output_bias, "bias of o");
  phrases.add(kind.norm == QueryKeyNorm::per_head, "norms of queries and keys, head by head");
  phrases.add(kind.norm == QueryKeyNorm::across_heads, "norms of queries and keys across heads");
  for (const Block& block : config.blocks) {
    if (!block.attention || !block.attention->kind.window) continue;
    const auto where =
        layers_with(config, [](const AttentionKind& other) { return other.window.has_value(); });
    phrases.add(true, "window of ", *block.attention->kind.window, " tokens in ", where);
    break;
  }
  phrases.add(kind.scale.has_value(), "scores times ", kind.scale.value_or(0));
  phrases.add(kind.softcap > 0, "scores capped at ", kind.softcap);
  return phrases.text();
}

std::string block(const Config& config) {
  Phrases phrases;
  const Block& first = config.blocks.front();
  phrases.add(first.norms == NormPlacement::before, "norms before");
  phrases.add(first.norms == NormPlacement::after, "norms after");
  phrases.add(first.norms == NormPlacement::both, "norms before and after");
  if (const auto* mlp = std::get_if<DenseMlp>(&first.mlp)) {
    phrases.add(true, mlp->activation == Activation::silu ? "SwiGLU" : "GeGLU");
    phrases.add(mlp->bias, "biases of the MLP");
  }
  phrases.add(first.residual_factor != 1, "added times ", first.residual_factor);
  return phrases.text();
}

std::string ends(const Config& config) {
  Phrases phrases;
  phrases.add(config.embedding_factor != 1, "embedding times ", config.embedding_factor);
  phrases.add(config.logits_factor != 1, "logits times ", config.logits_factor);
  phrases.add(config.logits_softcap > 0, "logits capped at ", config.logits_softcap);
  return phrases.text();
}

std::string why_unsayable(const Config& changed, const char* change) {
  try {
    if (changed.uniform())
      (void)stock_family(changed);
    else
      (void)written_form(changed);
    return "";
  } catch (const base::ModelError&) {
    return base::join("no family computes what a ", changed.architecture, " does with ", change);
  }
}

constexpr const char* kLongropeCounts =
    "how many factors longrope has follows from the hidden size and the heads";

bool counts_longrope(const Config& config) {
  const auto is_longrope = [](const Rope& rope) { return rope.kind == Rope::Kind::longrope; };
  return family_of(config.architecture).longrope_by_hidden &&
         std::any_of(config.ropes.begin(), config.ropes.end(), is_longrope);
}

// What no key tells of.
std::string trait_lines(const Family& family) {
  std::string text;
  const auto add = [&](bool said, const char* trait) {
    if (said) text += base::join("  always: ", trait, "\n");
  };
  add(family.query_key_value_bias, "biases of q, k and v");
  add(family.norm == QueryKeyNorm::per_head, "norms of queries and keys, head by head");
  add(family.norm == QueryKeyNorm::across_heads, "norms of queries and keys across heads");
  add(family.norms == NormPlacement::after, "norms after attention and MLP");
  add(family.norms == NormPlacement::both, "norms before and after attention and MLP");
  add(family.norm_weights_less != 0, "norms by 1 + w");
  add(family.embedding_times_root, "embedding times the root of hidden_size");
  add(family.window_theta.has_value(), "layers with a window have a rotary embedding of their own");
  add(family.partial_rotary, "partial_rotary_factor");
  add(family.queries_grow, "llama_4_scaling_beta");
  add(!family.stored.empty(), "q, k, v in one tensor, gate and up in another");
  return text;
}

std::string key_line(std::string name, std::string_view value) {
  name.resize(std::max<std::size_t>(name.size() + 2, 26), ' ');
  return base::join("  ", name, value, "\n");
}

// What is known to change nothing.
std::string unread_line(const Family& family) {
  std::string names;
  for (const auto name : family.ignored) names.append(names.empty() ? "" : ", ").append(name);
  return names.empty() ? "" : base::join("  change nothing: ", names, "\n");
}

std::string rope_lines(const Family& family) {
  auto text = key_line("rope_theta", base::join(family.rope_theta));
  if (family.rope) text += key_line("rope_parameters", family.rope);
  if (family.window_theta_key) text += key_line(family.window_theta_key, base::join(*family.window_theta));
  return text;
}

// What a family without the key accepts.
std::string elsewhere(const Key& key) {
  if (key.neutral == nullptr) return "";
  const std::string_view neutral = key.neutral;
  return neutral == "null" ? ", elsewhere refused" : base::join(", elsewhere only ", neutral);
}

std::string key_lines(std::span<const Key> keys) {
  std::string text;
  for (const Key& key : keys)
    text += key_line(key.name, base::join(key.absent ? key.absent : "has to be there", elsewhere(key)));
  return text;
}

constexpr std::size_t kNameColumn = 34;

std::string family_line(std::string name, std::string_view what) {
  name.resize(kNameColumn, ' ');
  return base::join(name, what, "\n");
}

// Another family of the same tensors, without the rule for the number of heads.
bool has_free_double(const Family& family) {
  return std::ranges::any_of(families(), [&](const Family* other) {
    return same_files(family, *other) && !other->heads_divide_hidden;
  });
}

std::string kept_line(const Family& family) {
  std::string text;
  const auto add = [&](bool said, const char* what) {
    if (said) text += family_line("", base::join("pruning leaves ", what));
  };
  add(family.norm == QueryKeyNorm::across_heads, "heads: norms of queries and keys go across them");
  add(family.embedding_times_root,
      "hidden features: the embedding is multiplied by the root of their number");
  const auto add_alike = [&](bool said, const char* what) {
    if (said) text += family_line("", base::join("units: uniform leaves ", what));
  };
  add_alike(family.longrope_by_hidden,
            "heads and hidden features with longrope: transformers counts its factors by them");
  add_alike(family.heads_divide_hidden && !has_free_double(family),
            "heads where hidden_size is no multiple of those left: transformers refuses such a model");
  return text;
}

}  // namespace

std::string families_text() {
  std::string text;
  for (const Family* family : families())
    text += family_line(family->architecture, family->models) + kept_line(*family);
  for (const Wrapper& wrapper : wrappers())
    text += family_line(wrapper.architecture, "the language part, as its text_config says");
  return text;
}

std::string family_keys_text() {
  std::string text = "all families: keys of config.json, and what an absent key means\n" +
                     key_lines(common_keys()) +
                     key_line("rope_parameters", "default, linear, dynamic, llama3, yarn or longrope") +
                     key_line("rope_scaling", "the older name of rope_parameters");
  for (const Family* family : families()) {
    text += base::join("\n", family->architecture, " (", family->model_type, "): ", family->models, "\n");
    text += trait_lines(*family) + rope_lines(*family) + key_lines(family->keys) + unread_line(*family);
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> described(const Config& config) {
  std::vector<std::pair<std::string, std::string>> list;
  for (auto& [name, text] :
       {std::pair{"positions", positions(config)}, std::pair{"attention", attention(config)},
        std::pair{"block", block(config)}, std::pair{"ends", ends(config)}})
    if (!text.empty()) list.emplace_back(name, text);
  return list;
}

std::string why_heads_stay(const Config& config) {
  const bool across = std::ranges::any_of(config.blocks, [](const Block& block) {
    return block.attention && block.attention->kind.norm == QueryKeyNorm::across_heads;
  });
  return across ? "queries and keys are normalised across heads, so without some the others would change"
                : "";
}

std::string why_heads_stay_alike(const Config& config) {
  if (auto why = why_heads_stay(config); !why.empty()) return why;
  if (counts_longrope(config)) return kLongropeCounts;
  Config narrower = config;
  for (Block& block : narrower.blocks) {
    if (!block.attention || block.attention->num_kv_heads == 1) continue;
    Attention& attention = *block.attention;
    attention.num_heads -= attention.num_heads / attention.num_kv_heads;
    attention.num_kv_heads -= 1;
  }
  return why_unsayable(narrower, "fewer heads and the same hidden size");
}

std::string why_hidden_stays(const Config& config) {
  if (family_of(config.architecture).embedding_times_root)
    return "the embedding is multiplied by the root of the hidden size, so with fewer features all would "
           "change";
  if (counts_longrope(config)) return kLongropeCounts;
  Config narrower = config;
  narrower.hidden_size = std::max<std::int64_t>(1, config.hidden_size - 1);
  return why_unsayable(narrower, "another hidden size and the same heads");
}

}  // namespace retort::architecture
