#include "retort/prune/moves.h"

#include <cmath>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"

namespace retort::prune {
namespace {

std::int64_t width_of(const compress::Candidate& candidate) {
  return static_cast<std::int64_t>(candidate.channels.front().size());
}

// The next multiple below; the width itself when there is none above 0.
std::int64_t next_width(std::int64_t width, std::int64_t multiple) {
  return width > multiple ? (width - 1) / multiple * multiple : width;
}

std::int64_t parameters_at(const architecture::Config& input, const compress::Candidate& candidate,
                           std::int64_t width) {
  auto narrow = candidate;
  for (auto& channels : narrow.channels) channels.resize(static_cast<std::size_t>(width));
  return compress::parameters_of(input, narrow);
}

std::int64_t hidden_of(const architecture::Config& input, const compress::Candidate& candidate) {
  return candidate.hidden.empty() ? input.hidden_size : std::ssize(candidate.hidden);
}

std::int64_t smallest_parameters(const architecture::Config& input, const PruneOptions& options) {
  auto narrow = input;
  for (auto& block : narrow.blocks) {
    if (options.channels && mlp_width(block) > 0)
      block.mlp = architecture::DenseMlp{std::min(options.width_multiple, mlp_width(block))};
    if (options.heads && block.attention)
      block.attention = architecture::Attention{block.attention->num_heads / block.attention->num_kv_heads, 1,
                                                block.attention->head_dim};
  }
  if (options.hidden) narrow.hidden_size = std::min(options.width_multiple, input.hidden_size);
  if (!options.blocks) return architecture::num_parameters(narrow);
  std::int64_t smallest = architecture::num_parameters(input);
  for (const auto& block : std::vector(narrow.blocks)) {
    narrow.blocks = {block};
    smallest = std::min(smallest, architecture::num_parameters(narrow));
  }
  return smallest;
}

void check_options(const architecture::Config& input, const PruneOptions& options) {
  base::require<base::UsageError>(
      options.blocks || options.heads || options.channels || options.hidden,
      "prune: neither blocks nor heads, channels or hidden features may be removed; switch one of them on.");
  base::require<base::UsageError>(options.width_multiple >= 1,
                                  "prune: width_multiple: expected at least 1, found ",
                                  options.width_multiple, ".");
  base::require<base::UsageError>(
      options.units != Units::uniform || !(options.heads || options.channels) || input.uniform(),
      "prune: narrowing needs blocks of one shape with dense MLPs, which this model does not "
      "have; switch heads and channels off.");
  const auto& weights = options.objective;
  base::require<base::UsageError>(
      weights.perplexity >= 0 && weights.kl >= 0 && weights.perplexity + weights.kl > 0,
      "prune: objective: expected weights of at least 0, one of them above 0, found ", weights.perplexity,
      " and ", weights.kl, ".");
}

}  // namespace

std::string describe(const Move& move) {
  switch (move.action) {
    case Move::Action::drop_block:
      return base::join("drop block ", move.block);
    case Move::Action::narrow:
      return base::join("narrow MLPs to ", move.width);
    case Move::Action::narrow_attention:
      return base::join("narrow attentions to ", move.width, " KV groups");
    case Move::Action::narrow_hidden:
      break;
  }
  return base::join("narrow hidden states to ", move.width);
}

std::vector<Move> moves_from(const architecture::Config& input, const compress::Candidate& candidate,
                             const PruneOptions& options) {
  std::vector<Move> moves;
  if (options.blocks && candidate.blocks.size() > 1)
    for (const auto block : candidate.blocks)
      moves.push_back({.action = Move::Action::drop_block, .block = block});
  const auto groups = std::ssize(compress::kept_groups(input, candidate, candidate.blocks.front()));
  if (options.heads && groups > 1)
    moves.push_back({.action = Move::Action::narrow_attention, .width = groups - 1});
  const auto width = width_of(candidate), next = next_width(width, options.width_multiple);
  if (options.channels && next < width) moves.push_back({.action = Move::Action::narrow, .width = next});
  const auto hidden = hidden_of(input, candidate), less = next_width(hidden, options.width_multiple);
  if (options.hidden && less < hidden)
    moves.push_back({.action = Move::Action::narrow_hidden, .width = less});
  return moves;
}

compress::Candidate moved(const architecture::Config& input, const compress::Candidate& candidate,
                          const Move& move, const calibrate::UnitScores& scores) {
  if (move.action == Move::Action::drop_block) return compress::without_block(candidate, move.block);
  if (move.action == Move::Action::narrow) return compress::narrowed(candidate, move.width, scores.channels);
  auto narrow = candidate;
  if (move.action == Move::Action::narrow_hidden) {
    const auto hidden = candidate.hidden.empty() ? compress::counted(input.hidden_size) : candidate.hidden;
    narrow.hidden = compress::highest(hidden, move.width, scores.hidden);
    return narrow;
  }
  for (const auto block : candidate.blocks) {
    const auto groups = compress::highest(compress::kept_groups(input, candidate, block), move.width,
                                          scores.groups[static_cast<std::size_t>(block)]);
    narrow = compress::with_groups(input, narrow, block, groups);
  }
  return narrow;
}

Move narrowing_to(const architecture::Config& input, const compress::Candidate& candidate,
                  const PruneOptions& options, std::int64_t parameters) {
  Move move{.action = Move::Action::narrow};
  if (!options.channels) return move;
  for (auto width = width_of(candidate);;) {
    const auto next = next_width(width, options.width_multiple);
    if (next == width) return move;
    width = next;
    if (parameters_at(input, candidate, width) > parameters) continue;
    move.width = width;
    return move;
  }
}

std::int64_t target_parameters(const architecture::Config& input, const PruneOptions& options) {
  check_options(input, options);
  const auto& target = options.target;
  const auto before = architecture::num_parameters(input);
  // What other units reach, their search space knows.
  const auto least = options.units == Units::uniform ? smallest_parameters(input, options) : 1;
  base::require<base::UsageError>(
      (target.parameters_fraction > 0) != (target.parameters > 0),
      "prune: target: expected either a fraction of the parameters or their number, found ",
      target.parameters > 0 ? "both" : "neither", "; give one.");
  const auto wanted =
      target.parameters > 0
          ? target.parameters
          : static_cast<std::int64_t>(std::floor(target.parameters_fraction * static_cast<double>(before)));
  base::require<base::UsageError>(wanted >= least && wanted < before, "prune: target: expected ", least,
                                  " to ", before - 1, " parameters (",
                                  static_cast<double>(least) / static_cast<double>(before),
                                  " to below 1 of this model's ", before, "), found ", wanted,
                                  "; choose one in this range, or another width_multiple.");
  return wanted;
}

}  // namespace retort::prune
