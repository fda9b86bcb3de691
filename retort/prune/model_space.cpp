#include "retort/prune/model_space.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"

namespace retort::prune {
namespace {

// The width itself, then every multiple below it, and 0 where the MLP may go.
std::vector<std::int64_t> widths_of(std::int64_t width, std::int64_t multiple, bool may_go) {
  std::vector<std::int64_t> widths{width};
  for (auto next = (width - 1) / multiple * multiple; next > 0; next -= multiple) widths.push_back(next);
  if (may_go) widths.push_back(0);
  return widths;
}

std::vector<std::int64_t> ranked(const std::vector<double>& scores, std::int64_t width) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(width));
  std::iota(order.begin(), order.end(), 0);
  base::ensure(scores.size() == order.size() || scores.empty(), "a score for every channel");
  if (!scores.empty())
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
    });
  return order;
}

double products(const architecture::Config& config) {
  double sum = 0;
  for (const auto& block : config.blocks)
    sum += static_cast<double>(architecture::matrix_parameters(block, config.hidden_size));
  return sum;
}

}  // namespace

ModelSpace::ModelSpace(const architecture::Config& input, const PruneOptions& options, std::int64_t target,
                       std::vector<std::vector<double>> channel_scores)
    : input_(input) {
  channel_scores.resize(input.blocks.size());
  for (std::size_t block = 0; block < input.blocks.size(); ++block)
    ranked_.push_back(ranked(channel_scores[block], mlp_width(input.blocks[block])));
  const auto all = architecture::num_parameters(input);
  space_.most_removed =
      all - target + static_cast<std::int64_t>(options.search.tolerance * static_cast<double>(all));
  space_.least_removed = all - target;

  using Kind = Part::Kind;
  for (std::int64_t block = 0; block < static_cast<std::int64_t>(input.blocks.size()); ++block) {
    const auto& shape = input.blocks[static_cast<std::size_t>(block)];
    const auto width = mlp_width(shape);
    if (options.units == Units::uniform || options.units == Units::blocks) {
      add({Kind::block, block, {}}, base::join("block ", block));
      continue;
    }
    if (shape.attention) add({Kind::attention, block, {}}, base::join("attention ", block));
    const bool whole_only = options.units == Units::sub_blocks;
    if (width > 0)
      add({Kind::mlp, block,
           whole_only ? std::vector<std::int64_t>{width, 0} : widths_of(width, options.width_multiple, true)},
          base::join("MLP ", block));
  }
  space_.admits = [this](const search::State& state) {
    const auto blocks = config_of(input_, candidate(state)).blocks;
    return std::any_of(blocks.begin(), blocks.end(),
                       [](const auto& block) { return block.attention.has_value(); }) &&
           std::any_of(blocks.begin(), blocks.end(), [](const auto& block) { return mlp_width(block) > 0; });
  };
  if (options.units == Units::uniform) {
    base::require<base::UsageError>(
        input.uniform(),
        "prune: uniform units need blocks of one shape with dense MLPs, which this "
        "model does not have; choose other units.");
    space_.removed_together = [this](const search::State& state) {
      return architecture::num_parameters(input_) - parameters(state);
    };
    add({Kind::width, -1, widths_of(mlp_width(input.blocks.front()), options.width_multiple, false)},
        "width");
  }
  search::validate(space_);
}

void ModelSpace::add(Part part, const std::string& name) {
  const auto levels = part.widths.empty() ? std::size_t{2} : part.widths.size();
  parts_.push_back(std::move(part));
  // What each level removes from the whole model.
  search::Unit unit{.name = name, .removed = {0}};
  const auto& added = parts_.back();
  const auto block = added.kind == Part::Kind::width ? std::int64_t{0} : added.block;
  const auto& shape = input_.blocks[static_cast<std::size_t>(block)];
  const auto whole_block = architecture::num_parameters(shape, input_.hidden_size);
  const auto copies = added.kind == Part::Kind::width ? static_cast<std::int64_t>(input_.blocks.size()) : 1;
  for (std::size_t level = 1; level < levels; ++level) {
    auto smaller = shape;
    std::int64_t left = 0;
    if (added.kind == Part::Kind::attention) smaller.attention.reset();
    if (!added.widths.empty()) {
      if (added.widths[level] > 0)
        smaller.mlp = architecture::DenseMlp{added.widths[level]};
      else
        smaller.mlp = std::monostate{};
    }
    if (added.kind != Part::Kind::block) left = architecture::num_parameters(smaller, input_.hidden_size);
    unit.removed.push_back(copies * (whole_block - left));
  }
  space_.units.push_back(std::move(unit));
}

Candidate ModelSpace::narrowed_block(const Candidate& candidate, std::int64_t block,
                                     std::int64_t width) const {
  const auto& order = ranked_[static_cast<std::size_t>(block)];
  std::vector<std::int64_t> channels(order.begin(), order.begin() + width);
  std::sort(channels.begin(), channels.end());
  return with_channels(input_, candidate, block, std::move(channels));
}

Candidate ModelSpace::candidate(const search::State& state) const {
  auto candidate = whole(input_);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto& part = parts_[i];
    if (state[i] == 0) continue;
    const auto level = static_cast<std::size_t>(state[i]);
    if (part.kind == Part::Kind::block) {
      candidate = without_block(candidate, part.block);
    } else if (part.kind == Part::Kind::attention) {
      candidate = without_attention(input_, candidate, part.block);
    } else if (part.kind == Part::Kind::mlp) {
      candidate = narrowed_block(candidate, part.block, part.widths[level]);
    } else {
      for (const auto block : std::vector(candidate.blocks))
        candidate = narrowed_block(candidate, block, part.widths[level]);
    }
  }
  return candidate;
}

search::Proxy ModelSpace::proxy_of(const std::vector<Influence>& influences) const {
  search::Proxy proxy(space_);
  double every_mlp = 0;
  for (const auto& influence : influences) every_mlp += influence.mlp;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto& part = parts_[i];
    for (std::int32_t level = 1; level <= space_.highest(i); ++level) {
      double whole = every_mlp, share = 1;
      if (part.block >= 0) {
        const auto& influence = influences[static_cast<std::size_t>(part.block)];
        whole = part.kind == Part::Kind::block       ? influence.block
                : part.kind == Part::Kind::attention ? influence.attention
                                                     : influence.mlp;
      }
      if (!part.widths.empty())
        share = 1 - static_cast<double>(part.widths[static_cast<std::size_t>(level)]) /
                        static_cast<double>(part.widths.front());
      proxy.set(i, level, whole * share);
    }
  }
  return proxy;
}

std::int64_t ModelSpace::parameters(const search::State& state) const {
  return parameters_of(input_, candidate(state));
}

double ModelSpace::work(const search::State& state) const {
  return products(config_of(input_, candidate(state))) / products(input_);
}

}  // namespace retort::prune
