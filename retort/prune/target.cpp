#include "retort/prune/target.h"

#include <algorithm>
#include <cmath>

#include "retort/architecture/counts.h"
#include "retort/architecture/description.h"
#include "retort/architecture/kept.h"
#include "retort/base/error.h"

namespace retort::prune {
namespace {

using architecture::PartKind;

// Without all that may go of each part.
architecture::Config narrowest(const architecture::Config& input, const PruneOptions& options) {
  auto kept = architecture::whole(input);
  const auto narrow = [&](PartKind part, std::vector<std::int64_t>& numbers) {
    if (options.removes(part))
      numbers.resize(std::min(numbers.size(), static_cast<std::size_t>(options.multiple_of(part))));
  };
  for (auto& block : kept.blocks) architecture::for_each_part(block, narrow);
  narrow(PartKind::hidden, kept.hidden);
  return architecture::config_of(input, kept);
}

std::int64_t smallest_parameters(const architecture::Config& input, const PruneOptions& options) {
  auto narrow = narrowest(input, options);
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
      options.blocks || options.removes_parts(),
      "prune: neither blocks nor heads, channels or hidden features may be removed; switch one of them on.");
  base::require<base::UsageError>(options.width_multiple >= 1,
                                  "prune: width_multiple: expected at least 1, found ",
                                  options.width_multiple, ".");
  base::require<base::UsageError>(
      options.units != Units::uniform || !options.removes_parts_of_blocks() || input.uniform(),
      "prune: narrowing needs blocks of one shape with dense MLPs, which this model does not "
      "have; switch heads and channels off.");
  require_removable(input, options);
  base::require<base::UsageError>(
      !options.target.is_time() || !options.hidden,
      "prune: hidden: expected false where the target is a time, found true: times "
      "of parts are of one hidden size; set hidden: false.");
  const auto& weights = options.objective;
  base::require<base::UsageError>(
      weights.perplexity >= 0 && weights.kl >= 0 && weights.perplexity + weights.kl > 0,
      "prune: objective: expected weights of at least 0, one of them above 0, found ", weights.perplexity,
      " and ", weights.kl, ".");
}

}  // namespace

void require_removable(const architecture::Config& input, const PruneOptions& options) {
  const auto check = [](bool wanted, const char* part, const std::string& why, const char* more = "") {
    base::require<base::UsageError>(!wanted || why.empty(), "prune: ", part,
                                    ": expected false for this model, ", "found true: ", why, "; set ", part,
                                    ": false", more, ".");
  };
  const bool alike = options.units == Units::uniform;
  check(options.takes_heads(), "heads", architecture::why_heads_stay(input));
  check(alike && options.heads, "heads", architecture::why_heads_stay_alike(input),
        ", or units: per_layer, whose result needs no class of transformers");
  check(alike && options.hidden, "hidden", architecture::why_hidden_stays(input));
}

std::int64_t usual_width_multiple(const architecture::Config& input) {
  constexpr std::int64_t kMostWidths = 64, kFinest = kUsualWidthMultiple;
  std::int64_t widest = 0;
  for (const auto& block : input.blocks) widest = std::max(widest, mlp_width(block));
  const auto multiple = (widest + kMostWidths - 1) / kMostWidths;
  return std::max(kFinest, (multiple + kFinest - 1) / kFinest * kFinest);
}

namespace {

std::int64_t parameters_with_blocks(const architecture::Config& input, const PruneOptions& options) {
  const auto blocks = std::ssize(input.blocks), left = options.target.blocks;
  base::require<base::UsageError>(
      options.units == Units::blocks, "prune: target.blocks: expected units: blocks, found '",
      base::word(options.units), "'; set units: blocks, or give target.parameters.");
  base::require<base::UsageError>(left < blocks, "prune: target.blocks: expected 1 to ", blocks - 1,
                                  " of this model's ", blocks, ", found ", left,
                                  "; choose one in this range.");
  const auto without = [&](std::int64_t block) {
    return architecture::parameters_of(input, architecture::without_block(architecture::whole(input), block));
  };
  const auto smaller = without(0);
  for (std::int64_t block = 1; block < blocks; ++block)
    base::require<base::UsageError>(without(block) == smaller,
                                    "prune: target.blocks: expected blocks of one size, found others in this "
                                    "model; give target.parameters.");
  const auto all = architecture::num_parameters(input);
  return all - (blocks - left) * (all - smaller);
}

// Before times are known: as many parameters of the blocks go as time shall, about.
std::int64_t parameters_for_time(const architecture::Config& input, const Target& target) {
  constexpr double kUnknownShare = 0.5, kLeastShare = 0.25;
  const auto share = std::max(kLeastShare, target.time.latency > 0 ? target.time.latency : kUnknownShare);
  const auto blocks = static_cast<double>(architecture::matrix_parameters(input));
  return architecture::num_parameters(input) - static_cast<std::int64_t>(std::ceil((1 - share) * blocks));
}

}  // namespace

std::int64_t target_parameters(const architecture::Config& input, const PruneOptions& options) {
  check_options(input, options);
  const auto& target = options.target;
  const auto before = architecture::num_parameters(input);
  // What other units reach, their search space knows.
  const auto least = options.units == Units::uniform ? smallest_parameters(input, options) : 1;
  base::require<base::UsageError>(
      (target.parameters_fraction > 0) + (target.parameters > 0) + (target.blocks > 0) +
              (target.time.latency > 0) + (target.time.milliseconds > 0) +
              (target.time.tokens_per_second > 0) ==
          1,
      "prune: target: expected one of a share or number of parameters, a number of blocks, and a time, found "
      "none or several; give one.");
  if (target.is_time()) return parameters_for_time(input, target);
  if (target.blocks > 0) return parameters_with_blocks(input, options);
  const auto wanted =
      target.parameters > 0
          ? target.parameters
          : static_cast<std::int64_t>(std::floor(target.parameters_fraction * static_cast<double>(before)));
  base::require<base::UsageError>(
      wanted >= least && wanted < before, "prune: target: expected ", least, " to ", before - 1,
      " parameters (", static_cast<double>(least) / static_cast<double>(before),
      " to below 1 of this model's ", before, "), found ", wanted, "; choose one in this range.");
  return wanted;
}

}  // namespace retort::prune
