// A channel of an MLP: a row of gate_proj and up_proj, and the input of down_proj that they make.
#include "retort/base/error.h"
#include "retort/compress/parts.h"

namespace retort::compress {
namespace {

using architecture::Role;

}  // namespace

const Part kChannels = {
    .action = "narrow",
    .in_block = "MLP",
    .in_all_blocks = "width",
    .described = [](std::int64_t left) { return base::join("narrow MLPs to ", left); },
    .count = [](const auto& config,
                auto block) { return mlp_width(config.blocks[static_cast<std::size_t>(block)]); },
    .left =
        [](const auto& kept, auto block) {
          const auto* stays = kept.find(block);
          return stays ? stays->channels : std::vector<std::int64_t>();
        },
    .with = architecture::with_channels,
    .scores = [](const auto& scores, auto block) -> const std::vector<double>& {
      return scores.channels[static_cast<std::size_t>(block)];
    },
    .influence = [](const auto& influence) { return influence.mlp; },
    .rows_each = [](const auto&, auto role) -> std::int64_t {
      return role == Role::gate || role == Role::up || role == Role::gate_bias || role == Role::up_bias;
    },
    .columns_each = [](const auto&, auto role) -> std::int64_t { return role == Role::down; },
    .reader = Role::down,
    .reader_weight = [](auto& weights) -> at::Tensor& { return weights.down_DI; },
    .mask = [](auto& hooks) -> at::Tensor& { return hooks.channel_mask_I; },
    .skip = [](auto& weights) { weights.down_DI = at::Tensor(); }};

}  // namespace retort::compress
