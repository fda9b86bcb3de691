#include "retort/prune/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "retort/architecture/counts.h"
#include "retort/architecture/layout.h"
#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/calibrate/enough_text.h"
#include "retort/calibrate/histogram.h"
#include "retort/calibrate/ranking.h"
#include "retort/calibrate/state_bytes.h"
#include "retort/calibrate/top_k_reference.h"
#include "retort/compress/compensated_layers.h"
#include "retort/prune/evaluator.h"
#include "retort/prune/model_space.h"
#include "retort/prune/target.h"
#include "retort/search/proxy.h"

namespace retort::prune {
namespace {

constexpr std::int64_t kHiddenStreams =
    4;  // of a prune stage: the input's outputs, and the three models of its compensation
// Where the options do not say how much calibration text there is.
constexpr std::int64_t kFittedTokensOfAnInput = 24, kUnfittedTokens = 24'576;
// Of a search over a space, where the options do not say what it may spend.
constexpr std::int64_t kUsualBudget = 400'000, kLeastBudgets = 3;
// In matrices of columns x columns: sums of fit and guard for all and for kept inputs, the damped ones and
// their factor; without compensation a ranking's products.
constexpr std::int64_t kFitSquares = 6, kRankingSquares = 2;  // obs inverts, as a fit does

// The most inputs of a layer that compensation may fit.
std::int64_t widest_fitted(const architecture::Config& config, const PruneOptions& options) {
  std::int64_t widest = 1;
  for (const auto& block : config.blocks) {
    if (options.channels || options.hidden) widest = std::max(widest, mlp_width(block));
    if (const auto& heads = block.attention; heads && (options.takes_heads() || options.hidden))
      widest = std::max(widest, heads->num_heads * heads->head_dim);
  }
  return widest;
}

double sum_of(const calibrate::TextShares& shares) {
  return shares.fitted + shares.choosing + shares.judging;
}

void warn_of_little_text(const PruneSetup& setup, const calibrate::TextSplit& text) {
  const auto& options = setup.options;
  if (!options.compensate || !options.narrows()) return;
  auto enough = options;
  enough.calibration_tokens = 0;
  const auto warning =
      calibrate::warning_of_little_text({.stage = "prune",
                                         .consequence = "compensation will gain little",
                                         .tokens = calibrate::num_tokens(text.fitted),
                                         .inputs = widest_fitted(setup.input.config, options)},
                                        calibration_tokens_of(setup.input.config, enough));
  if (warning) setup.observer.message(record::Level::warning, *warning);
}

// What the method evaluates before it has its first model.
struct LeastSearch {
  std::int64_t probes = 0, probes_tokens = 0, text_tokens = 0;
  std::int64_t tokens() const { return probes_tokens + text_tokens; }
};
// `rounds`: tokens that candidates are compared on, of the first batch of every source, of the second, ...
LeastSearch least_search(const architecture::Config& input, const PruneOptions& options,
                         const std::vector<std::int64_t>& rounds) {
  using enum SearchMethod;
  LeastSearch least{.text_tokens = std::accumulate(rounds.begin(), rounds.end(), std::int64_t{0})};
  // Refuses a target that it cannot reach.
  const ModelSpace space(input, options, target_parameters(input, options), {});
  const auto method = options.search.method;
  if (method == influence) least.text_tokens *= 2;  // the pass for influence
  if (method == influence || method == random || method == evolution) return least;
  least.probes = search::Proxy::evaluations(space.space(), kLeastProbes);
  const auto first = std::max<std::size_t>(1, rounds.size() / kFirstRungPart);
  for (std::size_t i = 0; i < first; ++i) least.probes_tokens += least.probes * rounds[i];
  return least;
}

std::vector<std::int64_t> rounds_of(const std::vector<calibrate::SourceText>& choosing,
                                    std::int64_t vocab_size, std::int64_t batch_tokens) {
  const auto places = calibrate::batch_places(choosing, vocab_size, batch_tokens);
  std::vector<std::int64_t> rounds;
  std::size_t round = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    round = i > 0 && places[i].source == places[i - 1].source ? round + 1 : 0;
    rounds.resize(std::max(rounds.size(), round + 1));
    rounds[round] += places[i].tokens;
  }
  return rounds;
}

// The longest that they may be, known before the text is read.
std::vector<std::int64_t> longest_rounds(std::int64_t text_tokens, const PruneOptions& options) {
  const auto shares = shares_of(options);
  const auto choosing = static_cast<double>(text_tokens) * shares.choosing / sum_of(shares);
  auto left = std::max<std::int64_t>(1, std::llround(choosing));
  const auto longest = std::max(kSearchBatchTokens, options.sequence_length);
  std::vector<std::int64_t> rounds;
  for (; left > 0; left -= rounds.back()) rounds.push_back(std::min<std::int64_t>(left, longest));
  return rounds;
}

// Statistics of every layer's inputs, and fits from them, in forward passes of the text that take the same
// time; and passes for the loss before and after.  Source: benchmarks/smollm2.
constexpr std::int64_t kRankingPasses = 2, kFittingPasses = 2, kLossPasses = 1;

std::int64_t budget_of(const PruneOptions& options, const LeastSearch& least) {
  const auto given = options.search.budget_tokens;
  return given < 0 ? std::max(kUsualBudget, kLeastBudgets * least.tokens()) : given;
}

SearchTokens affordable_search(const PruneOptions& options, const LeastSearch& least) {
  const auto given = budget_of(options, least);
  base::require<base::UsageError>(
      given == 0 || given >= least.tokens(), "prune: search.budget_tokens is ", given, ", expected at least ",
      least.tokens(), ": ", least.probes_tokens, " for ", least.probes, " probes of single units and ",
      least.text_tokens, " for one model on all of the text; give more, less calibration text, or a coarser ",
      "width_multiple.");
  return {.most = given, .least = least.tokens(), .exact = true};
}

SearchTokens search_tokens(const architecture::Config& input, const PruneOptions& options,
                           const calibrate::TextSplit& text, std::int64_t batch_tokens) {
  if (options.stepwise()) return {};
  const auto rounds = rounds_of(text.choosing, input.vocab_size, batch_tokens);
  return affordable_search(options, least_search(input, options, rounds));
}

// Whether candidates are compared as compensation leaves them, and may lose a part of a layer.
bool wants_after_compensation(const PruneOptions& options) {
  // Elsewhere a layer goes whole, or keeps all of its inputs.
  return options.compensate && options.search.after_compensation && options.narrows() &&
         options.removes_parts_of_blocks();
}

// Of one unit after the other, with the inputs of all blocks of a batch.
std::int64_t gradient_bytes(const architecture::Config& config, std::int64_t item_bytes,
                            std::int64_t batch_tokens, const PruneOptions& options) {
  if (!ranking_options(options).uses(calibrate::ChannelRanking::taylor)) return 0;
  std::int64_t largest = 0;
  for (const auto& unit : architecture::make_layout(config).units) largest = std::max(largest, unit.numel());
  return 2 * largest * item_bytes + calibrate::bytes_of_states(config, item_bytes, batch_tokens) +
         2 * calibrate::activation_bytes(config, item_bytes, batch_tokens);
}

// Tokens through the whole model, at least and at most.
struct TokenRange {
  double least = 0, most = 0;
};

// Each step measures every candidate and ranks what is left; the largest and the smallest first step bound
// how many steps there are.
TokenRange stepwise_tokens(const search::Space& space, const PruneWork& work) {
  std::int64_t smallest = std::numeric_limits<std::int64_t>::max(), largest = 1;
  for (const auto& unit : space.units) {
    smallest = std::min(smallest, unit.removed[1]);
    largest = std::max(largest, unit.removed[1]);
  }
  const double passes = work.compared_share * static_cast<double>(space.units.size()) + kRankingPasses;
  const auto tokens = [&](std::int64_t step) {
    return passes * static_cast<double>(work.text_tokens) *
           std::ceil(static_cast<double>(space.least_removed) / static_cast<double>(step));
  };
  return {tokens(largest), tokens(smallest)};
}

// Influence ends when it has ranked the units; the others may spend their budget.
TokenRange searched_tokens(const PruneOptions& options, const PruneWork& work) {
  const auto least = static_cast<double>(work.search.least), most = static_cast<double>(work.search.most);
  return {least, options.search.method == SearchMethod::influence ? least : std::max(least, most)};
}

}  // namespace

std::int64_t calibration_tokens_of(const architecture::Config& config, const PruneOptions& options) {
  if (options.calibration_tokens > 0) return options.calibration_tokens;
  const auto shares = shares_of(options);
  if (shares.fitted == 0) return kUnfittedTokens;
  return calibrate::text_tokens_for(widest_fitted(config, options), kFittedTokensOfAnInput, shares);
}

calibrate::RankingOptions ranking_options(const PruneOptions& options) {
  return {.ranking = options.channel_ranking,
          .winsorise_quantile = options.winsorise_quantile,
          .hidden = options.hidden,
          .groups = options.takes_heads() ? std::optional(options.head_ranking) : std::nullopt};
}

calibrate::TextShares shares_of(const PruneOptions& options) {
  return {.fitted = options.narrows() ? 5.0 : 0.0, .choosing = 2, .judging = 1};
}

PruneWork work_of(const architecture::Config& config, std::int64_t text_tokens, const PruneOptions& options,
                  const std::optional<SearchTokens>& search) {
  const bool fits = options.compensate && options.narrows();
  const auto passes = kLossPasses + (options.narrows() ? kRankingPasses : 0) + (fits ? kFittingPasses : 0);
  PruneWork work{.text_tokens = text_tokens,
                 .other_tokens = passes * text_tokens,
                 .fitted_inputs = fits ? widest_fitted(config, options) : 0};
  if (options.stepwise()) {
    work.compared_share = shares_of(options).choosing / sum_of(shares_of(options));
  } else if (search) {
    work.search = *search;
  } else {
    const auto least = least_search(config, options, longest_rounds(text_tokens, options));
    work.search = {.most = budget_of(options, least), .least = least.tokens()};
  }
  const ModelSpace space(config, options, target_parameters(config, options), {});
  work.nearest_parameters = space.nearest_size().value_or(0);
  work.nearest_share = static_cast<double>(work.nearest_parameters) /
                       static_cast<double>(architecture::num_parameters(config));
  const auto [least, most] =
      options.stepwise() ? stepwise_tokens(space.space(), work) : searched_tokens(options, work);
  const auto flops = architecture::flops_per_token(config, options.sequence_length);
  work.least_flops = flops * (static_cast<double>(work.other_tokens) + least);
  work.most_flops = flops * (static_cast<double>(work.other_tokens) + most);
  return work;
}

std::string describe(const PruneWork& work) {
  const auto tokens = [](std::int64_t count) {
    return base::human_count(static_cast<double>(count)) + " tokens";
  };
  std::string text;
  if (work.nearest_parameters > 0)
    text = base::join(
        "no units of this model reach the target within search.tolerance below it, so the nearest size is "
        "taken, ",
        work.nearest_parameters, " parameters (", std::lround(1000 * work.nearest_share) / 10.0, " %); ");
  text += "reads " + tokens(work.text_tokens) + " of calibration text";
  if (work.fitted_inputs > 0)
    text += base::join(", five eighths of them for fits of up to ", work.fitted_inputs, " inputs");
  text += base::join("; ranking, fits and losses take the time of ", work.other_tokens / work.text_tokens,
                     " forward passes of it");
  const auto& search = work.search;
  if (search.most > 0) {
    text += base::join(" and the search passes up to ", tokens(search.most),
                       search.most < search.least ? ", maybe too few: it" : " and", " needs ",
                       search.exact ? "" : "up to ", tokens(search.least),
                       search.exact ? "" : ", which the documents decide");
  } else if (work.compared_share > 0) {
    text += base::join(", and each step of the search passes ", std::lround(100 * work.compared_share),
                       " % of it for every candidate");
  } else {
    text += ", and the search has no limit";
  }
  return text;
}

TextTokens tokens_of(const calibrate::TextSplit& text) {
  TextTokens tokens{.choosing = calibrate::num_tokens(text.choosing),
                    .judging = calibrate::num_tokens(text.judging)};
  tokens.all = calibrate::num_tokens(text.fitted) + tokens.choosing + tokens.judging;
  return tokens;
}

TextTokens most_tokens(std::int64_t all, const PruneOptions& options) {
  constexpr double kLongestDocument = 0.25;
  const auto shares = shares_of(options);
  const auto most = [&](double share) {
    const auto part = std::min(1.0, share / sum_of(shares) + kLongestDocument);
    return static_cast<std::int64_t>(static_cast<double>(all) * part);
  };
  return {all, most(shares.choosing), most(shares.judging)};
}

// The model that is fitted, as it is and as it was; beside them the best one, while others that are tied with
// it are made.  A step ranks what is left as a model of its own, before the first one all of it.
std::int64_t most_made_parameters(const architecture::Config& config, const PruneOptions& options) {
  const std::int64_t models = !options.stepwise() && options.search.finalists > 1 ? 3 : 2;
  return std::max(models * target_parameters(config, options),
                  options.stepwise() ? architecture::num_parameters(config) : 0);
}

shard::MemoryPlan plan_prune(const architecture::Config& config, std::int64_t item_bytes,
                             const TextTokens& text, std::int64_t batch_tokens, const PruneOptions& options,
                             const HiddenStates& states, bool offloaded) {
  const bool on_disk = states.on_disk;
  const auto hidden = config.hidden_size * item_bytes;
  std::int64_t widest = config.hidden_size, head_dim = 0;
  for (const auto& block : config.blocks) {
    const auto& heads = block.attention;
    widest = std::max({widest, mlp_width(block), heads ? heads->num_heads * heads->head_dim : 0});
    head_dim = std::max(head_dim, heads ? heads->head_dim : 0);
  }
  const bool fits = wants_after_compensation(options);
  const bool inverts = options.compensate || ranking_options(options).uses(calibrate::ChannelRanking::obs);
  const auto fitted = fits ? compress::compensated_bytes(config, item_bytes) : compress::CompensatedBytes{};
  const auto streams = kHiddenStreams * (on_disk ? 2 * batch_tokens : text.all) + (on_disk ? text.all : 0);
  const auto inner =
      options.compensate && options.narrows() ? widest * (on_disk ? batch_tokens : text.all) : 0;
  const auto rows = std::min(
      std::max(chunk_rows(config.vocab_size), compress::CompensationOptions{}.head_rows), batch_tokens);
  const auto weights = offloaded ? calibrate::OnDevice::block_and_head : calibrate::OnDevice::all;
  return {{calibrate::planned_weights(kInputWeights, config, item_bytes, weights),
           offloaded
               ? shard::MemoryItem{"copies of blocks and heads of models that are made",
                                   2 * calibrate::weight_bytes(config, item_bytes, weights)}
               : shard::MemoryItem{"weights as they get", most_made_parameters(config, options) * item_bytes},
           {on_disk ? "hidden states, most of them on disk" : "hidden states",
            streams * hidden + inner * item_bytes},
           {"hidden states shared by candidates",
            std::min(states.cache_bytes,
                     kCachedCandidates * calibrate::bytes_of_states(config, item_bytes, text.choosing))},
           {"distributions and positions of the text",
            calibrate::top_k_bytes(text.choosing + text.judging, config.vocab_size, item_bytes) +
                text.all * (head_dim * 4 + 64)},
           {"sums for compensation", fitted.sums},
           {"weights of recent candidates", fitted.weights},
           {"work on a layer", (inverts ? kFitSquares : kRankingSquares) * widest * widest * 8 +
                                   3 * widest * calibrate::kBuckets * 8},
           {"gradients", gradient_bytes(config, item_bytes, batch_tokens, options)},
           {"activations of a batch",
            calibrate::activation_bytes(config, item_bytes, batch_tokens) +
                calibrate::bytes_together(config, item_bytes, batch_tokens,
                                          std::max(text.choosing, text.judging), offloaded)},
           {"logits", calibrate::logit_bytes(config, rows)}},
          base::join("lower calibration_tokens or sequence_length, ",
                     fits ? "set search.after_compensation: false, " : "", "or use a machine with more")};
}

PrunePlan plan_prune_within(std::int64_t memory_bytes, bool may_use_disk, const architecture::Config& config,
                            std::int64_t item_bytes, const TextTokens& text, std::int64_t batch_tokens,
                            const PruneOptions& options, bool offloaded) {
  HiddenStates states;
  const auto plan = [&] {
    return plan_prune(config, item_bytes, text, batch_tokens, options, states, offloaded);
  };
  const auto excess = [&] {
    return memory_bytes > 0 ? std::max<std::int64_t>(plan().total_bytes() - memory_bytes, 0) : 0;
  };
  states.on_disk = excess() > 0 && may_use_disk;
  states.cache_bytes = std::min(
      states.cache_bytes, kCachedCandidates * calibrate::bytes_of_states(config, item_bytes, text.choosing));
  states.cache_bytes -= std::min(states.cache_bytes, excess());
  return {states, plan()};
}

void require_affordable(const architecture::Config& input, const std::vector<calibrate::SourceText>& sources,
                        const PruneOptions& options) {
  (void)target_parameters(input, options);
  (void)search_tokens(input, options, calibrate::split_by_document(sources, shares_of(options)),
                      kSearchBatchTokens);
}

ResolvedPlan resolved(const PruneSetup& setup, std::int64_t batch_tokens) {
  const auto& input = setup.input;
  const auto& options = setup.options;
  const auto target = target_parameters(input.config, options);
  std::int64_t longest = 0;
  const auto together = std::max(batch_tokens, compress::CompensationOptions{}.batch_tokens);
  for (const auto& batch : calibrate::batch_places(setup.sources, input.config.vocab_size, together))
    longest = std::max(longest, batch.tokens);
  auto split = calibrate::split_by_document(setup.sources, shares_of(options));
  const auto search = search_tokens(input.config, options, split, batch_tokens);
  const auto scratch = setup.place.saved_file.parent_path();
  const auto memory = setup.place.memory;
  const auto text = tokens_of(split);
  const auto [states, plan] = plan_prune_within(memory, !scratch.empty(), input.config, input.item_bytes(),
                                                text, longest, options, input.offload != nullptr);
  setup.observer.message(record::Level::info, "prune: memory, at most:\n" + shard::describe(plan));
  setup.observer.message(record::Level::info,
                         "prune: " + describe(work_of(input.config, text.all, options, search)) + ".");
  if (memory > 0) shard::require_fits(plan, memory);
  for (const auto& warning : calibrate::warnings_of_cut(split, "prune", "f looks smaller than it is"))
    setup.observer.message(record::Level::warning, warning);
  warn_of_little_text(setup, split);
  return {.target_parameters = target,
          .budget_tokens = search.most,
          .text = std::move(split),
          .ranking = ranking_options(options),
          .evaluation = {.weights = options.objective,
                         .cache_bytes = states.cache_bytes,
                         .batch_tokens = batch_tokens,
                         .scratch = scratch,
                         .hidden_scratch = states.on_disk ? scratch : base::Path(),
                         .observer = &setup.observer},
          .memory_bytes = plan.total_bytes()};
}

Evaluator evaluator_of_candidates(const PruneSetup& setup, const ResolvedPlan& plan) {
  auto options = plan.evaluation;
  options.group = setup.group;
  if (wants_after_compensation(setup.options)) options.fitted = &plan.text.fitted;
  return Evaluator(setup.input, plan.text.choosing, options);
}

}  // namespace retort::prune
