#include "retort/publish/gguf_keys.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "retort/architecture/families.h"
#include "retort/architecture/rope.h"
#include "retort/base/error.h"
#include "retort/io/gguf_config.h"

namespace retort::publish {
namespace {

using architecture::Attention;
using architecture::Block;
using architecture::Config;
using architecture::Rope;
using base::ModelError;
using base::require;

// Files hold numbers as float32.
bool same(double a, double b) {
  return static_cast<float>(a) == static_cast<float>(b);
}

// Collects entries under the prefix of an architecture.
class Keys {
 public:
  explicit Keys(std::string_view architecture) : prefix_(base::join(architecture, ".")) {}

  void count(const char* key, std::int64_t value) { add(key, static_cast<std::uint32_t>(value)); }
  void number(const char* key, double value) { add(key, static_cast<float>(value)); }
  void text(const char* key, const char* value) { add(key, std::string(value)); }
  void add(const char* key, io::GgufValue value) { entries_.emplace_back(prefix_ + key, std::move(value)); }
  io::GgufEntries take() { return std::move(entries_); }

 private:
  std::string prefix_;
  io::GgufEntries entries_;
};

// That of a block, where it hides something of a text.
std::optional<std::int64_t> window_of(const Config& config, const Block& block) {
  if (!block.attention) return std::nullopt;
  const auto& window = block.attention->kind.window;
  return window && *window < config.max_position_embeddings ? window : std::nullopt;
}

// The rotary embedding of the first block that sees everything, or has a window; null without such a block.
const Rope* rope_of(const Config& config, bool windowed) {
  for (const Block& block : config.blocks)
    if (block.attention && block.attention->kind.window.has_value() == windowed && block.attention->kind.rope)
      return &config.ropes[*block.attention->kind.rope];
  return nullptr;
}

// By which llama.cpp turns the blocks without a window, or all of them.
const Rope* main_rope(const Config& config) {
  const Rope* whole = rope_of(config, false);
  return whole ? whole : rope_of(config, true);
}

// One number where blocks are alike, and a list of them otherwise.
template <typename Size>
void add_size(Keys& keys, const char* key, const Config& config, Size size) {
  if (config.uniform()) return keys.count(key, size(config.blocks.front()));
  std::vector<std::int32_t> sizes;
  for (const Block& block : config.blocks) sizes.push_back(static_cast<std::int32_t>(size(block)));
  keys.add(key, sizes);
}

void add_sizes(Keys& keys, const Config& config) {
  const Attention& attention = attention_of(config);
  keys.count("block_count", std::ssize(config.blocks));
  keys.count("context_length", config.max_position_embeddings);
  keys.count("embedding_length", config.hidden_size);
  add_size(keys, "feed_forward_length", config, architecture::mlp_width);
  add_size(keys, "attention.head_count", config,
           [](const Block& block) { return block.attention ? block.attention->num_heads : 0; });
  add_size(keys, "attention.head_count_kv", config, architecture::kv_groups);
  keys.count("attention.key_length", attention.head_dim);
  keys.count("attention.value_length", attention.head_dim);
  keys.count("vocab_size", config.vocab_size);
  keys.number("attention.layer_norm_rms_epsilon", config.rms_norm_eps);
}

// A yarn whose cos and sin are multiplied by what its factor says.
Rope by_length(Rope yarn) {
  yarn.attention_factor.reset();
  yarn.mscale.reset();
  yarn.mscale_all_dim.reset();
  return yarn;
}

// Llama 3.1's and Phi-3's scalings lie in tensors of their own.
void add_scaling(Keys& keys, const Rope& rope) {
  if (rope.kind == Rope::Kind::longrope) {
    keys.count("rope.scaling.original_context_length", rope.original_context);
    keys.number("rope.scaling.attn_factor", architecture::rope_factor(rope));
  }
  if (rope.kind != Rope::Kind::linear && rope.kind != Rope::Kind::yarn) return;
  const bool yarn = rope.kind == Rope::Kind::yarn;
  keys.text("rope.scaling.type", yarn ? "yarn" : "linear");
  keys.number("rope.scaling.factor", rope.factor);
  if (!yarn) return;
  keys.count("rope.scaling.original_context_length", rope.original_context);
  // Beside the one that follows from the length.
  const double times = architecture::rope_factor(rope) / architecture::rope_factor(by_length(rope));
  if (!same(times, 1)) keys.number("rope.scaling.attn_factor", times);
}

void add_rope(Keys& keys, const Config& config) {
  const Rope *whole = rope_of(config, false), *windowed = rope_of(config, true);
  const Rope* first = main_rope(config);
  if (!first) return;
  const auto head_dim = static_cast<double>(attention_of(config).head_dim);
  keys.number("rope.freq_base", first->theta);
  keys.count("rope.dimension_count", std::lround(head_dim * first->rotated_share));
  add_scaling(keys, *first);
  if (windowed && whole != windowed) keys.number("rope.freq_base_swa", windowed->theta);
}

// Which blocks have a window is said where the architecture would not guess it from their numbers.
void add_windows(Keys& keys, const Config& config, const io::GgufArchitecture& architecture,
                 const std::string& where) {
  std::vector<std::int32_t> windowed;
  std::optional<std::int64_t> window;
  const bool computed = architecture.window_pattern > 0;
  bool guessed = computed;
  for (const Block& block : config.blocks) {
    const auto own = window_of(config, block);
    windowed.push_back(own ? 1 : 0);
    if (own) window = own;
    const auto number = std::ssize(windowed);
    guessed = guessed && own.has_value() == (number % architecture.window_pattern != 0);
  }
  if (!window && architecture.says_no_window) keys.count("attention.sliding_window", 0);
  if (!window) return;
  require<ModelError>(computed, where, ": its blocks see ", *window, " tokens, and llama.cpp computes ",
                      architecture.name, " without a window; write the model for transformers.");
  keys.count("attention.sliding_window", *window);
  if (!guessed) keys.add("attention.sliding_window_pattern", windowed);
}

void add_soft_caps(Keys& keys, const Config& config, const io::GgufArchitecture& architecture) {
  if (architecture.soft_caps) keys.number("attn_logit_softcapping", attention_of(config).kind.softcap);
  if (architecture.soft_caps || (architecture.final_cap && config.logits_softcap != 0))
    keys.number("final_logit_softcapping", config.logits_softcap);
}

std::vector<float> llama3_divisors(const Rope& rope, std::int64_t head_dim) {
  const io::Llama3Bounds bounds{rope.low_frequency_factor, rope.high_frequency_factor,
                                static_cast<double>(rope.original_context)};
  std::vector<float> divisors;
  for (std::int64_t i = 0; i < head_dim; i += 2) {
    const double angle = std::pow(rope.theta, -static_cast<double>(i) / static_cast<double>(head_dim));
    divisors.push_back(static_cast<float>(io::llama3_divisor(angle, rope.factor, bounds)));
  }
  return divisors;
}

std::vector<float> as_floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

// What a file says as a product of two numbers.
bool nearly_same(double a, double b) {
  return std::abs(a - b) <= 1e-6 * std::abs(b);
}

bool same_rope(const Rope& a, const Rope& b, std::int64_t head_dim) {
  const bool scaled = a.kind == Rope::Kind::llama3
                          ? llama3_divisors(a, head_dim) == llama3_divisors(b, head_dim)
                          : same(a.factor, b.factor) &&
                                as_floats(a.short_factors) == as_floats(b.short_factors) &&
                                as_floats(a.long_factors) == as_floats(b.long_factors);
  const bool yarn =
      a.kind != Rope::Kind::yarn ||
      (same(a.beta_fast, b.beta_fast) && same(a.beta_slow, b.beta_slow) && a.truncate == b.truncate);
  const bool length = (a.kind != Rope::Kind::yarn && a.kind != Rope::Kind::longrope) ||
                      (a.original_context == b.original_context &&
                       nearly_same(architecture::rope_factor(a), architecture::rope_factor(b)));
  return a.kind == b.kind && same(a.theta, b.theta) && same(a.rotated_share, b.rotated_share) && scaled &&
         yarn && length && same(a.query_growth, b.query_growth);
}

// How each block's positions are told, whatever the ropes are numbered.
bool same_positions(const Config& a, const Config& b, std::size_t block) {
  const auto &mine = a.blocks[block].attention->kind.rope, &theirs = b.blocks[block].attention->kind.rope;
  if (!mine || !theirs) return mine.has_value() == theirs.has_value();
  return same_rope(a.ropes[*mine], b.ropes[*theirs], a.blocks[block].attention->head_dim);
}

double scale_of(const Attention& attention) {
  return attention.kind.scale.value_or(1 / std::sqrt(static_cast<double>(attention.head_dim)));
}

// What of block `i` is another one; empty: nothing.
const char* difference_in_block(const Config& wanted, const Config& found, std::size_t i) {
  const Block &a = wanted.blocks[i], &b = found.blocks[i];
  if (!architecture::same_size(a, b)) return "the sizes";
  if (!a.attention) return a.mlp == b.mlp ? nullptr : "the MLP's activation or biases";
  const auto &mine = a.attention->kind, &theirs = b.attention->kind;
  if (window_of(wanted, a) != window_of(found, b)) return "the window of attention";
  if (!same_positions(wanted, found, i)) return "the positions";
  if (mine.norm != theirs.norm) return "the norm of queries and keys";
  if (mine.query_key_value_bias != theirs.query_key_value_bias || mine.output_bias != theirs.output_bias)
    return "the biases of attention";
  if (!same(scale_of(*a.attention), scale_of(*b.attention))) return "the scale of scores";
  if (!same(mine.softcap, theirs.softcap)) return "the soft cap of scores";
  if (a.norms != b.norms) return "the places of norms";
  if (!same(a.residual_factor, b.residual_factor)) return "the factor of what is added";
  return a.mlp == b.mlp ? nullptr : "the MLP's activation or biases";
}

const char* difference_of_all(const Config& a, const Config& b) {
  if (a.blocks.size() != b.blocks.size()) return "the number of blocks";
  if (a.hidden_size != b.hidden_size || a.vocab_size != b.vocab_size) return "the sizes";
  if (!same(a.rms_norm_eps, b.rms_norm_eps)) return "rms_norm_eps";
  if (!same(a.embedding_factor, b.embedding_factor)) return "the factor of embeddings";
  if (!same(a.logits_factor, b.logits_factor)) return "the factor of logits";
  if (!same(a.logits_softcap, b.logits_softcap)) return "the soft cap of logits";
  return a.tie_word_embeddings == b.tie_word_embeddings ? nullptr : "the head";
}

// What a file could say and llama.cpp passes over, or does not load.  Seen with b11549.
void require_computed(const Config& config, const io::GgufArchitecture& architecture,
                      const std::string& where) {
  const Rope *rope = main_rope(config), *windowed = rope_of(config, true);
  const Rope usual;
  require<ModelError>(!rope || rope->kind != Rope::Kind::yarn ||
                          (same(rope->beta_fast, usual.beta_fast) && same(rope->beta_slow, usual.beta_slow)),
                      where, ": its yarn has other bounds (beta_fast, beta_slow) than ", usual.beta_fast,
                      " and ", usual.beta_slow,
                      ", which llama.cpp takes for all; write it for transformers.");
  require<ModelError>(!rope || rope->kind != Rope::Kind::yarn || !windowed || windowed == rope, where,
                      ": has a yarn beside blocks with windows and positions of their own, which llama.cpp "
                      "would scale, too; write it for transformers.");
  require<ModelError>(
      !architecture.soft_caps || (attention_of(config).kind.softcap > 0 && config.logits_softcap > 0), where,
      ": has no soft caps, expected some, because llama.cpp divides by those of ", architecture.name,
      "; write it for transformers.");
  require<ModelError>(!architecture.soft_caps || config.tie_word_embeddings, where,
                      ": has a head of its own, expected none, because llama.cpp takes no such ",
                      architecture.name, "; write it for transformers.");
}

}  // namespace

const Attention& attention_of(const Config& config) {
  const auto found =
      std::ranges::find_if(config.blocks, [](const Block& block) { return block.attention.has_value(); });
  base::ensure(found != config.blocks.end(), "some block has attention");
  return *found->attention;
}

const io::GgufArchitecture* find_by_block(const Config& config) {
  const std::string_view name = architecture::written_form(config).family->architecture;
  const auto row = std::ranges::find_if(io::kGgufArchitectures, [&](const auto& known) {
    return known.hugging_face == name || known.also == name;
  });
  if (row == io::kGgufArchitectures.end() || row->by_block.empty()) return nullptr;
  // llama.cpp takes the width of heads from the first block.
  const Attention* first = config.blocks.front().attention ? &*config.blocks.front().attention : nullptr;
  const bool alike = first && std::ranges::all_of(config.blocks, [&](const Block& block) {
                       return !block.attention || block.attention->head_dim == first->head_dim;
                     });
  return alike ? &*std::ranges::find(io::kGgufArchitectures, row->by_block, &io::GgufArchitecture::name)
               : nullptr;
}

const io::GgufArchitecture& gguf_architecture_of(const Config& config, const std::string& where) {
  if (!config.uniform()) {
    const auto* by_block = find_by_block(config);
    require<ModelError>(
        by_block != nullptr, where,
        ": its blocks differ in size, expected blocks that are alike, as llama.cpp wants them of its "
        "family.");
    return *by_block;
  }
  const std::string_view name = architecture::stock_family(config).architecture;
  std::string supported;
  for (const auto& known : io::kGgufArchitectures) {
    if (known.hugging_face == name || known.also == name) return known;
    if (known.is_by_block) continue;
    supported += base::join(supported.empty() ? "" : ", ", known.hugging_face);
    if (!known.also.empty()) supported += base::join(", ", known.also);
  }
  throw ModelError(base::join(where, ": is a ", name, ", expected one of ", supported,
                              " for a GGUF file; write it for transformers."));
}

io::GgufEntries gguf_keys(const Config& config, const io::GgufArchitecture& architecture,
                          const std::string& where) {
  require_computed(config, architecture, where);
  const auto& attention = attention_of(config);
  require<ModelError>(
      !architecture.heads_span_hidden || attention.num_heads * attention.head_dim == config.hidden_size,
      where, ": has ", attention.num_heads, " query heads of ", attention.head_dim,
      ", expected as many channels as its hidden size, ", config.hidden_size, ", because llama.cpp takes ",
      architecture.name, " with no others; write it for transformers, or prune no heads.");
  Keys keys(architecture.name);
  add_sizes(keys, config);
  add_rope(keys, config);
  add_windows(keys, config, architecture, where);
  add_soft_caps(keys, config, architecture);
  return keys.take();
}

std::vector<RopeDivisors> rope_divisors(const Config& config) {
  const Rope* rope = main_rope(config);
  if (!rope) return {};
  if (rope->kind == Rope::Kind::llama3)
    return {{"rope_freqs.weight", llama3_divisors(*rope, attention_of(config).head_dim)}};
  if (rope->kind == Rope::Kind::longrope)
    return {{"rope_factors_long.weight", as_floats(rope->long_factors)},
            {"rope_factors_short.weight", as_floats(rope->short_factors)}};
  return {};
}

void require_said(const Config& wanted, const Config& found, const io::GgufArchitecture& architecture,
                  const std::string& where) {
  std::string difference;
  if (const char* of_all = difference_of_all(wanted, found)) difference = of_all;
  for (std::size_t i = 0; difference.empty() && i < wanted.blocks.size(); ++i)
    if (const char* in_block = difference_in_block(wanted, found, i))
      difference = base::join(in_block, " in block ", i);
  require<ModelError>(difference.empty(), where, ": GGUF architecture \"", architecture.name,
                      "\" would compute something else: ", difference,
                      " cannot be said in it; write the model for transformers.");
}

}  // namespace retort::publish
