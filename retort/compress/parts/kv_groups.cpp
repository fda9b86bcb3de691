// A KV group: one key and value head with the query heads that use it, and the inputs of o_proj that they
// make.
#include "retort/base/error.h"
#include "retort/compress/parts.h"

namespace retort::compress {
namespace {

using architecture::Role;

std::int64_t inputs_each(const architecture::Block& block) {
  const auto& shape = block.attention;
  return shape ? shape->num_heads / shape->num_kv_heads * shape->head_dim : 0;
}

std::int64_t rows_each(const architecture::Block& block, Role role) {
  if (role == Role::query || role == Role::query_bias) return inputs_each(block);
  const bool of_keys =
      role == Role::key || role == Role::value || role == Role::key_bias || role == Role::value_bias;
  return of_keys ? block.attention->head_dim : 0;
}

}  // namespace

const Part kKvGroups = {
    .action = "narrow_attention",
    .in_block = "attention",
    .in_all_blocks = "KV groups",
    .described = [](std::int64_t left) { return base::join("narrow attentions to ", left, " KV groups"); },
    .count = [](const auto& config,
                auto block) { return kv_groups(config.blocks[static_cast<std::size_t>(block)]); },
    .left =
        [](const auto& kept, auto block) {
          const auto* stays = kept.find(block);
          return stays ? stays->kv_groups : std::vector<std::int64_t>();
        },
    .with = architecture::with_kv_groups,
    .scores = [](const auto& scores, auto block) -> const std::vector<double>& {
      return scores.groups[static_cast<std::size_t>(block)];
    },
    .influence = [](const auto& influence) { return influence.attention; },
    .rows_each = rows_each,
    .columns_each = [](const auto& block,
                       auto role) { return role == Role::output ? inputs_each(block) : 0; },
    .reader = Role::output,
    .reader_weight = [](auto& weights) -> at::Tensor& { return weights.output_DY; },
    .mask = [](auto& hooks) -> at::Tensor& { return hooks.head_mask_Y; },
    .skip = [](auto& weights) { weights.shape.attention.reset(); }};

}  // namespace retort::compress
