// A feature of the hidden state: what every layer that reads it or adds to it has of it, embedding and head
// too.
#include "retort/base/error.h"
#include "retort/compress/parts.h"

namespace retort::compress {
namespace {

using architecture::Role;

bool writes(Role role) {
  return role == Role::output || role == Role::down || role == Role::output_bias || role == Role::down_bias ||
         architecture::is_hidden_norm(role);
}

}  // namespace

const Part kHiddenFeatures = {
    .action = "narrow_hidden",
    .in_block = nullptr,
    .in_all_blocks = "hidden size",
    .described = [](std::int64_t left) { return base::join("narrow hidden states to ", left); },
    .count = [](const auto& config, auto) { return config.hidden_size; },
    .left = [](const auto& kept, auto) { return kept.hidden; },
    .with =
        [](const auto& kept, auto, auto numbers) {
          auto smaller = kept;
          smaller.hidden = std::move(numbers);
          return smaller;
        },
    .scores = [](const auto& scores, auto) -> const std::vector<double>& { return scores.hidden; },
    .influence = [](const auto& influence) { return influence.block; },
    .rows_each = [](const auto&, auto role) -> std::int64_t { return writes(role); },
    .columns_each = [](const auto&, auto role) -> std::int64_t { return !writes(role); },  // of matrices only
    .reader = Role::head,
    .reader_weight = nullptr,
    .mask = [](auto& hooks) -> at::Tensor& { return hooks.hidden_mask_D; },
    .skip = nullptr};

}  // namespace retort::compress
