#include "retort/prune/moves.h"

#include <cmath>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"

namespace retort::prune {
namespace {

std::int64_t width_of(const Candidate& candidate) {
  return static_cast<std::int64_t>(candidate.channels.front().size());
}

// The next multiple below; the width itself when there is none above 0.
std::int64_t next_width(std::int64_t width, std::int64_t multiple) {
  return width > multiple ? (width - 1) / multiple * multiple : width;
}

std::int64_t parameters_at(const architecture::Config& input, const Candidate& candidate,
                           std::int64_t width) {
  auto narrow = candidate;
  for (auto& channels : narrow.channels) channels.resize(static_cast<std::size_t>(width));
  return parameters_of(input, narrow);
}

std::int64_t smallest_parameters(const architecture::Config& input, const PruneOptions& options) {
  auto candidate = whole(input);
  if (!options.blocks)
    return parameters_at(input, candidate, std::min(options.width_multiple, width_of(candidate)));
  std::int64_t smallest = architecture::num_parameters(input);
  for (const auto block : candidate.blocks) {
    Candidate one{{block}, {candidate.channels[static_cast<std::size_t>(block)]}};
    const auto width = options.channels ? std::min(options.width_multiple, width_of(one)) : width_of(one);
    smallest = std::min(smallest, parameters_at(input, one, width));
  }
  return smallest;
}

void check_options(const architecture::Config& input, const PruneOptions& options) {
  base::require<base::UsageError>(
      options.blocks || options.channels,
      "prune: neither blocks nor channels may be removed; switch one of the two on.");
  base::require<base::UsageError>(options.width_multiple >= 1,
                                  "prune: width_multiple: expected at least 1, found ",
                                  options.width_multiple, ".");
  base::require<base::UsageError>(
      options.units != Units::uniform || !options.channels || input.uniform(),
      "prune: narrowing needs blocks of one shape with dense MLPs, which this model does not "
      "have; switch channels off.");
  const auto& weights = options.objective;
  base::require<base::UsageError>(
      weights.perplexity >= 0 && weights.kl >= 0 && weights.perplexity + weights.kl > 0,
      "prune: objective: expected weights of at least 0, one of them above 0, found ", weights.perplexity,
      " and ", weights.kl, ".");
}

}  // namespace

std::string describe(const Move& move) {
  return move.action == Move::Action::drop_block ? base::join("drop block ", move.block)
                                                 : base::join("narrow MLPs to ", move.width);
}

std::vector<Move> moves_from(const Candidate& candidate, const PruneOptions& options) {
  std::vector<Move> moves;
  if (options.blocks && candidate.blocks.size() > 1)
    for (const auto block : candidate.blocks)
      moves.push_back({.action = Move::Action::drop_block, .block = block});
  const auto width = width_of(candidate), next = next_width(width, options.width_multiple);
  if (options.channels && next < width) moves.push_back({.action = Move::Action::narrow, .width = next});
  return moves;
}

Candidate moved(const Candidate& candidate, const Move& move,
                const std::vector<std::vector<double>>& channel_scores) {
  return move.action == Move::Action::drop_block ? without_block(candidate, move.block)
                                                 : narrowed(candidate, move.width, channel_scores);
}

Move narrowing_to(const architecture::Config& input, const Candidate& candidate, const PruneOptions& options,
                  std::int64_t parameters) {
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
