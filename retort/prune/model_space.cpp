#include "retort/prune/model_space.h"

#include <algorithm>
#include <cmath>

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

// Equal scores where there are none.
void complete(std::vector<double>& scores, std::int64_t count) {
  base::ensure(scores.empty() || std::ssize(scores) == count, "a score for each");
  scores.resize(static_cast<std::size_t>(count), 0);
}

double products(const architecture::Config& config) {
  double sum = 0;
  for (const auto& block : config.blocks)
    sum += static_cast<double>(architecture::matrix_parameters(block, config.hidden_size));
  return sum;
}

}  // namespace

ModelSpace::ModelSpace(const architecture::Config& input, const PruneOptions& options, std::int64_t target,
                       const calibrate::UnitScores& scores)
    : input_(input), scores_(scores) {
  complete(scores_.hidden, input.hidden_size);
  scores_.channels.resize(input.blocks.size());
  scores_.groups.resize(input.blocks.size());
  for (std::size_t block = 0; block < input.blocks.size(); ++block) {
    complete(scores_.channels[block], mlp_width(input.blocks[block]));
    complete(scores_.groups[block], kv_groups(input.blocks[block]));
  }
  const auto all = architecture::num_parameters(input);
  space_.most_removed =
      all - target + static_cast<std::int64_t>(options.search.tolerance * static_cast<double>(all));
  space_.least_removed = all - target;
  space_.admits = [this](const search::State& state) { return admits(state); };
  for (std::int64_t block = 0; block < std::ssize(input.blocks); ++block) add_by_block(options, block);
  if (options.units == Units::uniform) add_uniform(options);
  search::validate(space_);
  require_reachable(all, options.search.tolerance);
}

// Units are few and large where only blocks or halves of them may go.
void ModelSpace::require_reachable(std::int64_t all, double tolerance) const {
  auto reach = search::reach(space_);
  if (!reach) return;
  std::int64_t every_unit = 0;
  for (const auto& unit : space_.units) every_unit += unit.removed.back();
  if (reach->from == every_unit) reach->from.reset();  // nothing would be left
  if (reach->from && *reach->from <= space_.most_removed) return;
  const auto size = [&](std::int64_t removed) {
    return base::join(all - removed, " (", static_cast<double>(all - removed) / static_cast<double>(all),
                      " of all)");
  };
  throw base::UsageError(base::join(
      "prune: target: expected a size that the units reach within search.tolerance ", tolerance, ", found ",
      all - space_.least_removed, " parameters; the nearest they reach are ", size(reach->below), " above",
      reach->from ? base::join(" and ", size(*reach->from), " below") : std::string(),
      "; choose one of these as target.parameters, a larger search.tolerance, or finer units."));
}

void ModelSpace::add_by_block(const PruneOptions& options, std::int64_t block) {
  using Kind = Part::Kind;
  const auto& shape = input_.blocks[static_cast<std::size_t>(block)];
  if (options.units == Units::uniform || options.units == Units::blocks) {
    if (options.units == Units::blocks || options.blocks)
      add({Kind::block, block}, base::join("block ", block));
    return;
  }
  const bool whole_only = options.units == Units::sub_blocks;
  const auto widths = [&](std::int64_t width, std::int64_t multiple) {
    return whole_only ? std::vector<std::int64_t>{width, 0} : widths_of(width, multiple, true);
  };
  if (const auto groups = kv_groups(shape); groups > 0 && (whole_only || options.heads))
    add({Kind::attention, block, widths(groups, 1)}, base::join("attention ", block));
  if (const auto width = mlp_width(shape); width > 0 && (whole_only || options.channels))
    add({Kind::mlp, block, widths(width, options.width_multiple)}, base::join("MLP ", block));
}

void ModelSpace::add_uniform(const PruneOptions& options) {
  using Kind = Part::Kind;
  base::require<base::UsageError>(input_.uniform(),
                                  "prune: uniform units need blocks of one shape with dense MLPs, which this "
                                  "model does not have; choose other units.");
  space_.removed_together = [this](const search::State& state) {
    return architecture::num_parameters(input_) - parameters(state);
  };
  const auto& shape = input_.blocks.front();
  const auto widths = [&](Kind kind, std::int64_t width, std::int64_t multiple, const char* name) {
    if (auto levels = widths_of(width, multiple, false); levels.size() > 1)
      add({kind, -1, std::move(levels)}, name);
  };
  if (options.heads) widths(Kind::attention, kv_groups(shape), 1, "KV groups");
  if (options.channels) widths(Kind::mlp, mlp_width(shape), options.width_multiple, "width");
  if (options.hidden) widths(Kind::hidden, input_.hidden_size, options.width_multiple, "hidden size");
}

void ModelSpace::add(Part part, const std::string& name) {
  const auto levels = static_cast<std::int32_t>(part.widths.empty() ? 2 : part.widths.size());
  search::Unit unit{.name = name, .removed = {0}};
  const auto all = architecture::num_parameters(input_);
  for (std::int32_t level = 1; level < levels; ++level)
    unit.removed.push_back(all -
                           compress::parameters_of(input_, applied(compress::whole(input_), part, level)));
  parts_.push_back(std::move(part));
  space_.units.push_back(std::move(unit));
}

// A model has at least one attention and at least one MLP.
bool ModelSpace::admits(const search::State& state) const {
  std::vector<bool> attends, transforms;
  for (const auto& block : input_.blocks) {
    attends.push_back(block.attention.has_value());
    transforms.push_back(mlp_width(block) > 0);
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto& part = parts_[i];
    const bool gone =
        state[i] > 0 && (part.widths.empty() || part.widths[static_cast<std::size_t>(state[i])] == 0);
    if (!gone) continue;
    const auto block = static_cast<std::size_t>(part.block);
    if (part.kind != Part::Kind::mlp) attends[block] = false;
    if (part.kind != Part::Kind::attention) transforms[block] = false;
  }
  const auto any = [](const std::vector<bool>& blocks) {
    return std::find(blocks.begin(), blocks.end(), true) != blocks.end();
  };
  return any(attends) && any(transforms);
}

compress::Candidate ModelSpace::narrowed_block(const compress::Candidate& candidate, Part::Kind kind,
                                               std::int64_t block, std::int64_t width) const {
  const auto i = static_cast<std::size_t>(block);
  if (kind == Part::Kind::attention)
    return compress::with_groups(
        input_, candidate, block,
        compress::highest(compress::counted(kv_groups(input_.blocks[i])), width, scores_.groups[i]));
  return compress::with_channels(
      input_, candidate, block,
      compress::highest(compress::counted(mlp_width(input_.blocks[i])), width, scores_.channels[i]));
}

compress::Candidate ModelSpace::applied(const compress::Candidate& candidate, const Part& part,
                                        std::int32_t level) const {
  if (part.kind == Part::Kind::block) return compress::without_block(candidate, part.block);
  const auto width = part.widths[static_cast<std::size_t>(level)];
  auto smaller = candidate;
  if (part.kind == Part::Kind::hidden) {
    smaller.hidden = compress::highest(compress::counted(input_.hidden_size), width, scores_.hidden);
    return smaller;
  }
  if (part.block >= 0) return narrowed_block(candidate, part.kind, part.block, width);
  for (const auto block : candidate.blocks) smaller = narrowed_block(smaller, part.kind, block, width);
  return smaller;
}

compress::Candidate ModelSpace::candidate(const search::State& state) const {
  auto candidate = compress::whole(input_);
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (state[i] > 0) candidate = applied(candidate, parts_[i], state[i]);
  return candidate;
}

search::Proxy ModelSpace::proxy_of(const std::vector<calibrate::Influence>& influences) const {
  search::Proxy proxy(space_);
  calibrate::Influence every;
  for (const auto& influence : influences) {
    every.block += influence.block;
    every.attention += influence.attention;
    every.mlp += influence.mlp;
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto& part = parts_[i];
    for (std::int32_t level = 1; level <= space_.highest(i); ++level) {
      const auto& influence = part.block < 0 ? every : influences[static_cast<std::size_t>(part.block)];
      const double whole = part.kind == Part::Kind::attention ? influence.attention
                           : part.kind == Part::Kind::mlp     ? influence.mlp
                                                              : influence.block;
      double share = 1;
      if (!part.widths.empty())
        share = 1 - static_cast<double>(part.widths[static_cast<std::size_t>(level)]) /
                        static_cast<double>(part.widths.front());
      proxy.set(i, level, whole * share);
    }
  }
  return proxy;
}

std::int64_t ModelSpace::parameters(const search::State& state) const {
  return compress::parameters_of(input_, candidate(state));
}

double ModelSpace::work(const search::State& state) const {
  return products(compress::config_of(input_, candidate(state))) / products(input_);
}

}  // namespace retort::prune
