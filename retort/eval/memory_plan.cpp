#include "retort/eval/memory_plan.h"

#include <algorithm>

#include "retort/architecture/counts.h"
#include "retort/architecture/layout.h"
#include "retort/base/error.h"
#include "retort/eval/text_decoder.h"
#include "retort/ops/attention.h"
#include "retort/ops/packed_linear.h"
#include "retort/ops/work_memory.h"

namespace retort::eval {
namespace {

std::int64_t weight_bytes(const architecture::Config& config, std::int64_t item_bytes) {
  return architecture::make_layout(config).size() * item_bytes;
}

// The scorer's own copy of final norm and head, which is float32 at least.
std::int64_t head_copy_bytes(const architecture::Config& config, std::int64_t item_bytes) {
  return item_bytes >= 4 ? 0 : (config.vocab_size + 1) * config.hidden_size * 4;
}

std::int64_t wide(std::int64_t item_bytes) {
  return std::max<std::int64_t>(4, item_bytes);
}

// Tables of the rotary embedding.
std::int64_t position_bytes(const architecture::Config& config, std::int64_t tokens) {
  return architecture::rotary_values_per_token(config) * tokens * 4;
}

// A chunk of logits of one model or of two, with the hidden states that they are made of.  A model that is
// its own teacher makes them once, and is compared all the same.
std::int64_t logits_bytes(std::int64_t models, bool compared, std::int64_t rows, std::int64_t vocab,
                          std::int64_t hidden, std::int64_t item_bytes, ops::Path path) {
  return (models * rows * vocab + 3 * rows * hidden) * wide(item_bytes) +
         ops::score_work_bytes(path, rows, vocab, item_bytes, compared);
}

}  // namespace

shard::MemoryPlan plan_scoring(const architecture::Config& model, const architecture::Config* teacher,
                               std::int64_t item_bytes, std::int64_t context, ops::Path path,
                               const BatchSettings& batch) {
  const auto tokens = std::max(context, batch.tokens), rows = std::min(batch.head_rows, tokens);
  const bool two = teacher && teacher != &model;
  const auto& wider = two && teacher->hidden_size > model.hidden_size ? *teacher : model;
  const auto hidden = wider.hidden_size * item_bytes * tokens;
  auto work = shard::block_forward_bytes(model, tokens, context, item_bytes, path);
  if (two) work = std::max(work, shard::block_forward_bytes(*teacher, tokens, context, item_bytes, path));
  shard::MemoryPlan plan{{}, "lower the context, or use a machine with more"};
  plan.items.push_back({kModelWeights, weight_bytes(model, item_bytes)});
  if (two) plan.items.push_back({kTeacherWeights, weight_bytes(*teacher, item_bytes)});
  if (const auto heads =
          head_copy_bytes(model, item_bytes) + (two ? head_copy_bytes(*teacher, item_bytes) : 0))
    plan.items.push_back({"heads in float32", heads});
  // Ids and targets, and at most one start of a window for each token.
  plan.items.push_back({"token ids and positions", 24 * tokens + position_bytes(wider, tokens)});
  plan.items.push_back({"hidden states", (two ? 2 : 1) * hidden});
  const auto scoring = logits_bytes(two ? 2 : 1, teacher != nullptr, rows, model.vocab_size,
                                    wider.hidden_size, item_bytes, path);
  plan.items.push_back({"work of a block, or logits of a chunk",
                        ops::product_work_bytes(path, item_bytes) + std::max(work, scoring)});
  return plan;
}

std::int64_t gathered_bytes(const architecture::Config& model, const architecture::Config* teacher,
                            std::int64_t item_bytes) {
  // A head that is widened is a copy, and its unit is let go of.
  const bool holds_head = item_bytes >= 4;
  const auto layout = architecture::make_layout(model);
  const auto own = shard::gathered_to_score(layout, holds_head);
  if (!teacher || teacher == &model) return own * item_bytes;
  const auto other = architecture::make_layout(*teacher);
  const auto held = [&](const architecture::Layout& of) {
    return holds_head ? of.units[static_cast<std::size_t>(of.head_unit())].size : 0;
  };
  return std::max(own + held(other), shard::gathered_to_score(other, holds_head) + held(layout)) * item_bytes;
}

std::int64_t held_out_bytes(const architecture::Config& model, std::int64_t item_bytes, std::int64_t tokens,
                            std::int64_t sequence_tokens, std::int64_t head_rows, ops::Path path) {
  const auto scoring = logits_bytes(1, false, std::min(head_rows, tokens), model.vocab_size,
                                    model.hidden_size, item_bytes, path);
  return head_copy_bytes(model, item_bytes) + position_bytes(model, sequence_tokens) +
         model.hidden_size * item_bytes * tokens +
         std::max(scoring, shard::block_forward_bytes(model, tokens, sequence_tokens, item_bytes, path));
}

namespace {

constexpr auto kPackedWeights = "weights in the order of products";

struct UnitBytes {
  std::int64_t all = 0, largest = 0;
  void add(std::int64_t bytes) {
    all += bytes;
    largest = std::max(largest, bytes);
  }
};

// Of the units behind the first one, which holds the embedding.
UnitBytes units_behind_the_embedding(const architecture::Layout& layout, std::int64_t item_bytes) {
  UnitBytes bytes;
  for (std::size_t unit = 1; unit < layout.units.size(); ++unit)
    bytes.add(layout.units[unit].size * item_bytes);
  return bytes;
}

// In the order of products, on a CPU, where that is a copy.
UnitBytes packed_units(const architecture::Layout& layout, std::int64_t item_bytes) {
  UnitBytes bytes;
  for (const auto& unit : layout.units) {
    std::int64_t of_unit = 0;
    for (const auto& tensor : unit.tensors)
      if (tensor.is_matrix())
        of_unit += ops::packed_linear_bytes(tensor.rows(), tensor.numel / tensor.rows(), item_bytes);
    bytes.add(of_unit);
  }
  return bytes;
}

std::int64_t paged_bytes(const architecture::Config& config, std::int64_t item_bytes, const CacheRoom& room) {
  std::int64_t bytes = 0;
  for (const auto& block : config.blocks)
    if (block.attention)
      bytes += 2 * TextDecoder::pages_of(room, block.attention->kind.window.value_or(0)) * ops::kPageTokens *
               block.attention->num_kv_heads * block.attention->head_dim * item_bytes;
  return bytes;
}

// Of a text that goes on with several tokens.
std::int64_t attention_of_end_bytes(const architecture::Config& config, std::int64_t item_bytes,
                                    std::int64_t tokens, ops::Path path) {
  std::int64_t most = 0;
  for (const auto& block : config.blocks) {
    if (!block.attention) continue;
    const auto& heads = *block.attention;
    const ops::AttentionSizes sizes{.segment = tokens,
                                    .heads = heads.num_heads,
                                    .queries = heads.num_heads * heads.head_dim,
                                    .keys = heads.num_kv_heads * heads.head_dim};
    most = std::max(most, ops::attention_of_end_work_bytes(path, sizes, item_bytes));
  }
  return most;
}

shard::MemoryPlan plan_of_texts(const architecture::Config& config, std::int64_t item_bytes,
                                const CacheRoom& room, std::int64_t tokens, std::int64_t longest,
                                ops::Path path, WeightsFrom from) {
  const auto layout = architecture::make_layout(config);
  const auto behind = units_behind_the_embedding(layout, item_bytes);
  const bool copies = path == ops::Path::cpu;
  const auto packed = copies ? packed_units(layout, item_bytes) : UnitBytes();
  // A unit of a file goes when its copy is made; so one of them and the embedding are there unpacked.
  const auto unpacked = copies && from == WeightsFrom::file
                            ? layout.units.front().size * item_bytes + behind.largest
                            : weight_bytes(config, item_bytes);
  return {
      {{kModelWeights, unpacked},
       {kPackedWeights, from == WeightsFrom::ranks ? packed.largest : packed.all},
       {"keys and values", paged_bytes(config, item_bytes, room)},
       {"work of a block", ops::product_work_bytes(path, item_bytes) + position_bytes(config, tokens) +
                               2 * tokens * config.hidden_size * wide(item_bytes) +
                               shard::block_forward_bytes(config, tokens, longest, wide(item_bytes), path) +
                               attention_of_end_bytes(config, item_bytes, longest, path)},
       {"logits", room.texts * config.vocab_size * 4 + config.vocab_size * 32}},
      ""};
}

}  // namespace

shard::MemoryPlan plan_texts(const architecture::Config& config, std::int64_t item_bytes,
                             std::span<const Prompt> prompts, const TextsOptions& options, ops::Path path,
                             WeightsFrom from) {
  auto plan = plan_of_texts(config, item_bytes, cache_room_of(config, prompts, options),
                            tokens_at_once(prompts, options), longest_prompt(prompts), path, from);
  plan.advice = "shorten the prompts, ask for fewer new tokens, or use a machine with more";
  return plan;
}

shard::MemoryPlan plan_texts_within(std::int64_t available_bytes, const architecture::Config& config,
                                    std::int64_t item_bytes, std::span<const Prompt> prompts,
                                    const TextsOptions& options, ops::Path path, WeightsFrom from) {
  const auto plan_of = [&](std::int64_t texts) {
    auto fewer = options;
    fewer.texts_at_once = texts;
    return plan_texts(config, item_bytes, prompts, fewer, path, from);
  };
  auto plan = plan_of(options.texts_at_once);
  if (plan.total_bytes() <= available_bytes) return plan;
  const auto fitting =
      most_that_fit(available_bytes, std::min(options.texts_at_once, std::ssize(prompts)) - 1, plan_of);
  if (fitting > 0) plan.advice = base::join("make ", fitting, " texts at once (--batch), ", plan.advice);
  return plan;
}

std::int64_t most_that_fit(std::int64_t available_bytes, std::int64_t most,
                           const std::function<shard::MemoryPlan(std::int64_t)>& plan_of) {
  std::int64_t fitting = 0, too_many = most + 1;
  while (too_many - fitting > 1) {
    const auto middle = (fitting + too_many) / 2;
    (plan_of(middle).total_bytes() <= available_bytes ? fitting : too_many) = middle;
  }
  return fitting;
}

namespace {

std::int64_t sum_of(const std::vector<shard::MemoryItem>& items) {
  return shard::MemoryPlan{items, ""}.total_bytes();
}

bool is_of_weights(const shard::MemoryItem& item) {
  return item.what == kModelWeights || item.what == kPackedWeights;
}

}  // namespace

void PlanOfLoadedModels::add(const std::string& name, const std::vector<shard::MemoryPlan>& plans) {
  for (const auto& item : plans.front().items)
    if (is_of_weights(item)) weights_.push_back({base::join(name, ": ", item.what), item.bytes});
  for (const auto& plan : plans) {
    std::vector<shard::MemoryItem> rest;
    for (const auto& item : plan.items)
      if (!is_of_weights(item)) rest.push_back({base::join(name, ": ", item.what), item.bytes});
    if (sum_of(rest) > sum_of(rest_)) rest_ = std::move(rest);
  }
}

shard::MemoryPlan PlanOfLoadedModels::plan() const {
  auto items = weights_;
  items.insert(items.end(), rest_.begin(), rest_.end());
  return {items, ""};
}

shard::MemoryPlan plan_chat(const architecture::Config& config, std::int64_t item_bytes, std::int64_t tokens,
                            ops::Path path) {
  auto plan = plan_of_texts(config, item_bytes, {.texts = 1, .longest_tokens = tokens, .tokens = tokens},
                            tokens, tokens, path, WeightsFrom::file);
  plan.advice = "lower --context, or use a machine with more";
  return plan;
}

}  // namespace retort::eval
