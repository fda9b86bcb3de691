#include "retort/prune/model_space.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/compress/parts.h"

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

// Of each half the first alone where halves go as a whole.
std::vector<architecture::PartKind> parts_of_blocks(bool once_a_half) {
  std::vector<architecture::PartKind> parts;
  for (const auto part : architecture::kPartKinds) {
    const auto half = architecture::half_of(part);
    const bool again = std::ranges::any_of(
        parts, [&](architecture::PartKind other) { return architecture::half_of(other) == half; });
    if (half && !(once_a_half && again)) parts.push_back(part);
  }
  return parts;
}

// What is left of a candidate whose part has this width, in one block of the input or (-1) in all of them or
// in the hidden state: those with the highest scores stay.
architecture::Kept narrowed(const architecture::Kept& candidate, architecture::PartKind part,
                            std::int64_t block, std::int64_t width, const calibrate::UnitScores& scores) {
  const auto once = [&](const architecture::Kept& kept, std::int64_t number) {
    auto numbers = architecture::numbers_of(kept, part, number);
    if (numbers.empty()) return kept;  // its half is gone already
    return architecture::with(
        kept, part, number,
        architecture::highest(std::move(numbers), width, scores_of(scores, part, number)));
  };
  if (block >= 0 || !architecture::half_of(part)) return once(candidate, block);
  auto smaller = candidate;
  for (const auto& each : candidate.blocks) smaller = once(smaller, each.number);
  return smaller;
}

}  // namespace

std::string describe(const Move& move) {
  return move.part ? compress::part_of(*move.part).described(move.width)
                   : base::join("drop block ", move.block);
}

ModelSpace::ModelSpace(const architecture::Config& input, const PruneOptions& options, std::int64_t target,
                       const calibrate::UnitScores& scores, Size size)
    : input_(input), size_(std::move(size)), all_(size_.of(input)) {
  take_scores(scores);
  space_.least_removed = all_ - target;
  space_.most_removed = options.stepwise()
                            ? all_
                            : space_.least_removed + static_cast<std::int64_t>(options.search.tolerance *
                                                                               static_cast<double>(all_));
  space_.admits = [this](const search::State& state) { return admits(state); };
  for (std::int64_t block = 0; block < std::ssize(input.blocks); ++block) add_by_block(options, block);
  if (options.units == Units::uniform) add_uniform(options);
  require_enough();
  search::validate(space_);
  take_nearest();
}

void ModelSpace::take_scores(const calibrate::UnitScores& scores) {
  scores_ = scores;
  for (const auto part : architecture::kPartKinds)
    for (std::int64_t block = 0; block < std::ssize(input_.blocks); ++block)
      complete(scores_of(scores_, part, block), architecture::count_of(input_, part, block));
}

void ModelSpace::require_enough() const {
  search::State every;
  for (std::size_t unit = 0; unit < space_.units.size(); ++unit) every.push_back(space_.highest(unit));
  if (every.empty()) return;  // which validate() refuses
  const auto least = all_ - space_.removed(every), found = all_ - space_.least_removed;
  base::require<base::UsageError>(least <= found, "prune: target: expected at least ", size_.text(least),
                                  " (", static_cast<double>(least) / static_cast<double>(all_),
                                  " of this model's ", size_.text(all_),
                                  "), which stay where all units are gone, found ", size_.text(found),
                                  "; choose at least that, or more kinds of units.");
}

// Units are few and large where only blocks or halves of them may go.
void ModelSpace::take_nearest() {
  auto reach = search::reach(space_);
  if (!reach) return;
  std::int64_t every_unit = 0;
  for (const auto& unit : space_.units) every_unit += unit.removed.back();
  if (reach->from == every_unit) reach->from.reset();  // nothing would be left
  if (reach->from && *reach->from <= space_.most_removed) return;
  const auto asked = space_.least_removed;
  const bool pruned_above = reach->below > 0;
  base::require<base::UsageError>(
      reach->from || pruned_above, "prune: target: expected a size that the units reach, found ",
      size_.text(all_ - asked), " of ", size_.text(all_), "; choose finer units.");
  const bool below_is_nearer = reach->from && (!pruned_above || *reach->from - asked < asked - reach->below);
  const auto removed = below_is_nearer ? *reach->from : reach->below;
  space_.least_removed = space_.most_removed = removed;
  nearest_size_ = all_ - removed;
}

void ModelSpace::add_by_block(const PruneOptions& options, std::int64_t block) {
  if (options.units == Units::uniform || options.units == Units::blocks) {
    if (options.units == Units::blocks || options.blocks) add({.block = block}, base::join("block ", block));
    return;
  }
  const bool whole_only = options.units == Units::sub_blocks;
  std::set<std::optional<architecture::Half>> halves;
  for (const auto part : parts_of_blocks(/*once_a_half=*/whole_only)) {
    const auto count = architecture::count_of(input_, part, block);
    if (count == 0 || !(whole_only || options.removes(part))) continue;
    if (!halves.insert(architecture::half_of(part)).second) count_together();  // they share weights
    add({part, block,
         whole_only ? std::vector<std::int64_t>{count, 0}
                    : widths_of(count, options.multiple_of(part), /*may_go=*/true)},
        compress::part_of(part).unit(block));
  }
}

void ModelSpace::count_together() {
  space_.removed_together = [this](const search::State& state) { return all_ - size_of(candidate(state)); };
}

void ModelSpace::add_uniform(const PruneOptions& options) {
  base::require<base::UsageError>(input_.uniform(),
                                  "prune: uniform units need blocks of one shape with dense MLPs, which this "
                                  "model does not have; choose other units.");
  count_together();
  for (const auto part : architecture::kPartKinds) {
    if (!options.removes(part)) continue;
    auto levels = widths_of(architecture::count_of(input_, part, 0), options.multiple_of(part),
                            /*may_go=*/false);
    if (levels.size() > 1) add({part, -1, std::move(levels)}, compress::part_of(part).unit(-1));
  }
}

void ModelSpace::add(Removable removable, const std::string& name) {
  const auto levels = static_cast<std::int32_t>(removable.part ? removable.widths.size() : 2);
  search::Unit unit{.name = name, .removed = {0}};
  for (std::int32_t level = 1; level < levels; ++level)
    unit.removed.push_back(all_ - size_of(applied(architecture::whole(input_), removable, level)));
  removables_.push_back(std::move(removable));
  space_.units.push_back(std::move(unit));
}

// A model has at least one attention and at least one MLP.
bool ModelSpace::admits(const search::State& state) const {
  std::vector<bool> attends, transforms;
  for (const auto& block : input_.blocks) {
    attends.push_back(block.attention.has_value());
    transforms.push_back(mlp_width(block) > 0);
  }
  for (std::size_t i = 0; i < removables_.size(); ++i) {
    const auto& [part, number, widths] = removables_[i];
    if (state[i] == 0 || (part && widths[static_cast<std::size_t>(state[i])] > 0)) continue;
    const auto block = static_cast<std::size_t>(number);
    const auto half = part ? architecture::half_of(*part) : std::nullopt;
    if (half != architecture::Half::mlp) attends[block] = false;
    if (half != architecture::Half::attention) transforms[block] = false;
  }
  const auto any = [](const std::vector<bool>& blocks) {
    return std::find(blocks.begin(), blocks.end(), true) != blocks.end();
  };
  return any(attends) && any(transforms);
}

architecture::Kept ModelSpace::applied(const architecture::Kept& candidate, const Removable& removable,
                                       std::int32_t level) const {
  const auto& [part, number, widths] = removable;
  if (!part) return architecture::without_block(candidate, number);
  return narrowed(candidate, *part, number, widths[static_cast<std::size_t>(level)], scores_);
}

architecture::Kept ModelSpace::candidate(const search::State& state) const {
  const bool beyond =
      !ranked_state_.empty() && std::ranges::equal(ranked_state_, state, std::ranges::less_equal());
  auto candidate = beyond ? ranked_ : architecture::whole(input_);
  for (std::size_t i = 0; i < removables_.size(); ++i)
    if (state[i] > (beyond ? ranked_state_[i] : 0)) candidate = applied(candidate, removables_[i], state[i]);
  return candidate;
}

void ModelSpace::rank_again(const search::State& state, const calibrate::UnitScores& scores) {
  ranked_ = candidate(state);
  ranked_state_ = state;
  take_scores(scores);
}

Move ModelSpace::move(const search::State& from, const search::State& to) const {
  const auto unit = static_cast<std::size_t>(std::ranges::mismatch(from, to).in1 - from.begin());
  const auto& [part, block, widths] = removables_[unit];
  return {part, block, part ? widths[static_cast<std::size_t>(to[unit])] : -1};
}

std::optional<std::size_t> ModelSpace::unit_of_all_channels() const {
  for (std::size_t unit = 0; unit < removables_.size(); ++unit)
    if (removables_[unit].part == architecture::PartKind::channels && removables_[unit].block < 0)
      return unit;
  return {};
}

search::Proxy ModelSpace::proxy_of(const std::vector<calibrate::Influence>& influences) const {
  search::Proxy proxy(space_);
  calibrate::Influence every;
  for (const auto& influence : influences) {
    every.block += influence.block;
    every.attention += influence.attention;
    every.mlp += influence.mlp;
  }
  for (std::size_t i = 0; i < removables_.size(); ++i) {
    const auto& [part, block, widths] = removables_[i];
    const auto& influence = block < 0 ? every : influences[static_cast<std::size_t>(block)];
    const double whole = part ? compress::part_of(*part).influence(influence) : influence.block;
    for (std::int32_t level = 1; level <= space_.highest(i); ++level) {
      const double share = part ? 1 - static_cast<double>(widths[static_cast<std::size_t>(level)]) /
                                          static_cast<double>(widths.front())
                                : 1;
      proxy.set(i, level, whole * share);
    }
  }
  return proxy;
}

std::int64_t ModelSpace::size_of(const architecture::Kept& candidate) const {
  return size_.of(architecture::config_of(input_, candidate));
}

double ModelSpace::work(const search::State& state) const {
  const auto left = architecture::matrix_parameters(architecture::config_of(input_, candidate(state)));
  return static_cast<double>(left) / static_cast<double>(architecture::matrix_parameters(input_));
}

}  // namespace retort::prune
