#include "retort/publish/padded.h"

#include <algorithm>
#include <variant>

#include "retort/architecture/counts.h"
#include "retort/architecture/families.h"
#include "retort/base/error.h"

namespace retort::publish {
namespace {

using architecture::Attention;
using architecture::AttentionKind;
using architecture::Block;
using architecture::Config;
using architecture::DenseMlp;
using base::ModelError;

// A reason why zeros do not do, with what is left to do.
template <typename... Parts>
void require(bool ok, const Parts&... parts) {
  base::require<ModelError>(
      ok, "config.json: ", parts...,
      "; leave the model in its own form, which transformers loads with trust_remote_code=True.");
}

// What all blocks get.
struct Sizes {
  std::int64_t head_dim = 0, heads_per_group = 0, groups = 0, width = 0;
};

// Heads of one block beside those of the blocks before it.
void add_attention(const Attention& attention, std::size_t block, Sizes& sizes) {
  const std::int64_t heads_per_group = attention.num_heads / attention.num_kv_heads;
  if (sizes.groups == 0) {
    sizes.head_dim = attention.head_dim;
    sizes.heads_per_group = heads_per_group;
  }
  require(attention.head_dim == sizes.head_dim, "heads of block ", block, " have ", attention.head_dim,
          " channels, expected ", sizes.head_dim,
          " as in the blocks before it, because zeros in a head change which channels its positions turn");
  require(heads_per_group == sizes.heads_per_group, "block ", block, " has ", heads_per_group,
          " query heads for each KV group, expected ", sizes.heads_per_group,
          " as in the blocks before it, because whole groups are padded");
  sizes.groups = std::max(sizes.groups, attention.num_kv_heads);
}

Sizes largest(const Config& config) {
  Sizes sizes;
  for (std::size_t i = 0; i < config.blocks.size(); ++i) {
    const Block& block = config.blocks[i];
    base::ensure(!std::holds_alternative<architecture::ExpertsMlp>(block.mlp), "blocks have no experts");
    if (block.attention) add_attention(*block.attention, i, sizes);
    sizes.width = std::max(sizes.width, architecture::mlp_width(block));
  }
  require(sizes.groups > 0, "no block has attention, expected one whose size the others get");
  require(sizes.width > 0, "no block has an MLP, expected one whose size the others get");
  return sizes;
}

// Channels of an MLP of zeros: a block of most types of GGUF.
constexpr std::int64_t kNarrowest = 32;

bool see_alike(const AttentionKind& a, const AttentionKind& b) {
  return a.window == b.window && a.rope == b.rope;
}

// What the layers see by the rule of their family, if all that have attention follow it: programs that know
// the rule and no list then take the padded model.
std::optional<Config> by_rule(const Config& config) {
  const auto& family = architecture::family_of(config.architecture);
  auto settings = architecture::settings_of(family, config);
  settings.layer_types.reset();
  settings.no_rope_layers.reset();
  settings.use_sliding_window = settings.sliding_window.has_value();
  Config rule = architecture::config_of(family, settings, "config.json");
  for (std::size_t i = 0; i < config.blocks.size(); ++i)
    if (const auto& attention = config.blocks[i].attention;
        attention && !see_alike(attention->kind, rule.blocks[i].attention->kind))
      return std::nullopt;
  return rule;
}

// What a block without attention, or without an MLP, takes from others: all but sizes.
struct Kinds {
  AttentionKind attention;
  DenseMlp mlp;
};

Kinds first_kinds(const std::vector<Block>& blocks) {
  const auto attends = [](const Block& block) { return block.attention.has_value(); };
  const auto transforms = [](const Block& block) { return architecture::mlp_width(block) > 0; };
  return {std::ranges::find_if(blocks, attends)->attention->kind,
          std::get<DenseMlp>(std::ranges::find_if(blocks, transforms)->mlp)};
}

// Each block with both halves.  One that was lost is of the kind of the block before it, or of the first, and
// sees what the rule says.
Config with_all_halves(Config config, const Sizes& sizes) {
  Kinds kinds = first_kinds(config.blocks);
  const auto rule = by_rule(config);
  for (std::size_t i = 0; i < config.blocks.size(); ++i) {
    Block& block = config.blocks[i];
    if (block.attention) {
      kinds.attention = block.attention->kind;
    } else if (rule) {
      kinds.attention.window = rule->blocks[i].attention->kind.window;
      kinds.attention.rope = rule->blocks[i].attention->kind.rope;
    }
    if (const auto* mlp = std::get_if<DenseMlp>(&block.mlp)) kinds.mlp = *mlp;
    kinds.mlp.width = sizes.width;
    block.attention = Attention{.head_dim = sizes.head_dim, .kind = kinds.attention};
    block.mlp = kinds.mlp;
  }
  return config;
}

void set_groups(Config& config, const Sizes& sizes, std::int64_t groups) {
  for (Block& block : config.blocks) {
    block.attention->num_heads = groups * sizes.heads_per_group;
    block.attention->num_kv_heads = groups;
  }
}

bool has_class(const Config& config) try {
  (void)architecture::stock_family(config);
  return true;
} catch (const ModelError&) {
  return false;
}

// Classes that do not take every number of heads want it to divide hidden_size, or hidden_size by it to be
// the width of a head.
bool may_help(const Config& config, const Sizes& sizes, std::int64_t groups) {
  const std::int64_t heads = groups * sizes.heads_per_group;
  return config.hidden_size % heads == 0 || config.hidden_size / heads == sizes.head_dim;
}

// With the fewest groups that a class takes.
void give_groups(Config& config, const Sizes& sizes) {
  const std::int64_t most =
      std::max(2 * sizes.groups, config.hidden_size / sizes.head_dim / sizes.heads_per_group);
  set_groups(config, sizes, sizes.groups);
  architecture::validate(config, "config.json, padded");
  for (std::int64_t groups = sizes.groups; groups <= most; ++groups) {
    if (groups > sizes.groups && !may_help(config, sizes, groups)) continue;
    set_groups(config, sizes, groups);
    if (has_class(config)) return;
  }
  require(false, "no class of transformers computes what a ", config.architecture, " does and takes ",
          sizes.groups * sizes.heads_per_group, " to ", most * sizes.heads_per_group,
          " heads with hidden_size ", config.hidden_size);
}

// Zeros have to give zeros, and to leave the other heads what they are.
void check_norms(const Block& block, const Block& full, std::size_t number, double eps) {
  const bool fewer = architecture::kv_groups(block) < architecture::kv_groups(full);
  const auto norm = full.attention->kind.norm;
  const bool half_is_new = !block.attention || architecture::mlp_width(block) == 0;
  const bool normed =
      (half_is_new && block.norms_after()) || (fewer && norm != architecture::QueryKeyNorm::none);
  require(eps > 0 || !normed,
          "rms_norm_eps is 0, expected more, because the norm of zeros is not a number without it");
  require(!fewer || !block.attention || norm != architecture::QueryKeyNorm::across_heads, "block ", number,
          " has ", architecture::kv_groups(block), " KV groups, expected ", architecture::kv_groups(full),
          ", because its queries and keys are normalised across all heads and zeros would change their mean");
}

}  // namespace

Config padded(const Config& config) {
  const Sizes sizes = largest(config);
  Config full = with_all_halves(config, sizes);
  give_groups(full, sizes);
  for (std::size_t i = 0; i < config.blocks.size(); ++i)
    check_norms(config.blocks[i], full.blocks[i], i, config.rms_norm_eps);
  return full;
}

Config with_mlps(Config config) {
  const auto first = std::ranges::find_if(
      config.blocks, [](const Block& block) { return architecture::mlp_width(block) > 0; });
  require(first != config.blocks.end(), "no block has an MLP, expected one whose kind the others get");
  DenseMlp narrow = std::get<DenseMlp>(first->mlp);
  narrow.width = kNarrowest;
  for (Block& block : config.blocks)
    if (architecture::mlp_width(block) == 0) block.mlp = narrow;
  return config;
}

}  // namespace retort::publish
