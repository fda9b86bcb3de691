#include "retort/prune/plan.h"

#include <algorithm>
#include <cmath>
#include <iterator>
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

// Of a layer that is ranked: counts of the inputs of its block, and what is cut of them.
constexpr std::int64_t kRankingHistograms = 8;
// Where the options do not say how much calibration text there is.
constexpr std::int64_t kFittedTokensOfAnInput = 24, kUnfittedTokens = 24'576;
// Of a search over a space, where the options do not say what it may spend.
constexpr std::int64_t kUsualBudget = 400'000, kLeastBudgets = 3;
// In matrices of columns x columns: sums of fit and guard for all and for kept inputs, the damped ones and
// their factor; obs inverts, as a fit does.
constexpr std::int64_t kFitSquares = 6;

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

// The bytes of a prune stage's phases.  Each gives back what it holds before the next one begins; what all
// of them have beside it is in plan_prune.
struct PruneSizes {
  const architecture::Config& config;
  std::int64_t item;
  const TextTokens& text;
  std::int64_t batch_tokens;
  const PruneOptions& options;
  bool on_disk;
  ops::Path path;

  std::int64_t widest() const;
  std::int64_t head_dim() const;
  bool compensates() const { return options.compensate && options.narrows(); }
  // Hidden states of so many tokens, or of the two batches at hand.
  std::int64_t states_of(std::int64_t tokens) const {
    return (on_disk ? std::min(tokens, 2 * batch_tokens) : tokens) * config.hidden_size * item;
  }
  std::int64_t activations(bool offloaded) const {
    return calibrate::activation_bytes(config, item, batch_tokens) +
           calibrate::bytes_together(config, item, batch_tokens, std::max(text.choosing, text.judging),
                                     offloaded);
  }
  static std::int64_t fit(std::int64_t columns) { return kFitSquares * columns * columns * 8; }
  std::int64_t widest_inverted() const;
  // Of a batch that candidates are compared on.
  std::int64_t compared_logits() const {
    const auto rows = options.stepwise()
                          ? batch_tokens
                          : std::min(batch_tokens, std::max(kSearchBatchTokens, options.sequence_length));
    return calibrate::logit_bytes(config, std::min(chunk_rows(config.vocab_size), rows), path);
  }
  std::int64_t weights_of_steps() const;
  std::int64_t weights_of_candidates() const;
  std::vector<shard::MemoryItem> ranking(bool offloaded) const;
  std::vector<shard::MemoryItem> search(bool offloaded) const;
  std::vector<shard::MemoryItem> making(bool offloaded) const;
  std::vector<shard::MemoryItem> timing() const;
  std::vector<shard::MemoryItem> largest_phase(bool offloaded) const;
};

std::int64_t PruneSizes::widest() const {
  std::int64_t widest = config.hidden_size;
  for (const auto& block : config.blocks) {
    const auto& heads = block.attention;
    widest = std::max({widest, mlp_width(block), heads ? heads->num_heads * heads->head_dim : 0});
  }
  return widest;
}

std::int64_t PruneSizes::head_dim() const {
  std::int64_t largest = 0;
  for (const auto& block : config.blocks)
    largest = std::max(largest, block.attention ? block.attention->head_dim : 0);
  return largest;
}

// The most inputs of a layer that is ranked by obs.
std::int64_t PruneSizes::widest_inverted() const {
  const auto ranked = ranking_options(options);
  const bool obs = ranked.ranking == calibrate::ChannelRanking::obs;
  std::int64_t widest = obs && options.hidden ? config.hidden_size : 0;
  for (const auto& block : config.blocks) {
    if (obs) widest = std::max(widest, mlp_width(block));
    if (const auto& heads = block.attention;
        heads && ranked.at(model::Tap::output_input) == calibrate::ChannelRanking::obs)
      widest = std::max(widest, heads->num_heads * heads->head_dim);
  }
  return widest;
}

// A stepwise search ranks anew in every step, and so has new weights of every layer.  A step removes less of
// what is left than of the whole.
std::int64_t PruneSizes::weights_of_steps() const {
  const auto target = target_parameters(config, options);
  const ModelSpace space(config, options, target, {});
  std::int64_t smallest = std::numeric_limits<std::int64_t>::max(), columns = 0;
  for (const auto& unit : space.space().units) smallest = std::min(smallest, unit.removed[1]);
  for (const auto& block : config.blocks) {
    const auto& heads = block.attention;
    columns += mlp_width(block) + (heads ? heads->num_heads * heads->head_dim : 0);
  }
  const auto left = static_cast<double>(target) / static_cast<double>(architecture::num_parameters(config));
  const auto steps =
      std::ceil(static_cast<double>(space.space().least_removed) / (left * static_cast<double>(smallest)));
  return (static_cast<std::int64_t>(steps) + 1) * columns * config.hidden_size * item;
}

// Of every layer one for each width that it may have.
std::int64_t PruneSizes::weights_of_candidates() const {
  if (options.hidden || options.width_multiple <= 0) return std::numeric_limits<std::int64_t>::max();
  if (options.stepwise()) return weights_of_steps();
  std::int64_t bytes = 0;
  const auto add = [&](std::int64_t columns, std::int64_t parts) {
    bytes += parts * columns * config.hidden_size * item;
  };
  for (const auto& block : config.blocks) {
    if (options.channels)
      add(mlp_width(block), (mlp_width(block) + options.width_multiple - 1) / options.width_multiple);
    if (const auto& heads = block.attention; heads && options.takes_heads())
      add(heads->num_heads * heads->head_dim, heads->num_kv_heads);
  }
  return bytes;
}

// All text passes in memory, and a model that is left by a step is ranked as one of its own.
std::vector<shard::MemoryItem> PruneSizes::ranking(bool offloaded) const {
  const auto models = options.stepwise() && !offloaded ? architecture::num_parameters(config) : 0;
  return {{"weights as they get", models * item},
          {"hidden states", text.all * config.hidden_size * item},
          {"statistics of a block, and fits",
           fit(widest_inverted()) + kRankingHistograms * widest() * calibrate::kBuckets * 8},
          {"gradients", gradient_bytes(config, item, batch_tokens, options)},
          {"activations of a batch", activations(offloaded) + 2 * batch_tokens * widest() * item}};
}

std::vector<shard::MemoryItem> PruneSizes::search(bool offloaded) const {
  const auto fits = wants_after_compensation(options) ? fit(widest()) : 0;
  const auto states = (offloaded ? 2 : 1) * 2 * batch_tokens * config.hidden_size * item;
  return {{"activations of a batch, or its logits",
           std::max({activations(offloaded), compared_logits() + states, fits})}};
}

// The models that are made, both on their way through the text with what each block is fitted to.
std::vector<shard::MemoryItem> PruneSizes::making(bool offloaded) const {
  const auto made = offloaded ? 2 * calibrate::weight_bytes(config, item, calibrate::OnDevice::block_and_head)
                              : most_made_parameters(config, options) * item;
  const auto states = compensates() ? 2 * states_of(text.all) + states_of(text.choosing) : 0;
  const auto inner =
      compensates() ? (on_disk ? std::min(text.all, batch_tokens) : text.all) * widest() * item : 0;
  const auto head_rows = std::min(compress::CompensationOptions{}.head_rows, batch_tokens);
  const auto logits = std::max(calibrate::logit_bytes(config, head_rows, path), compared_logits());
  return {
      {offloaded ? "copies of blocks and heads of models that are made" : "weights as they get", made},
      {on_disk ? "hidden states, most of them on disk" : "hidden states", states + states_of(text.judging)},
      {"distributions of the text that judges",
       calibrate::top_k_bytes(text.judging, config.vocab_size, item)},
      {"fits and activations, or logits",
       std::max(inner + (compensates() ? fit(widest()) : 0) + activations(offloaded),
                logits + 2 * batch_tokens * config.hidden_size * item)}};
}

std::vector<shard::MemoryItem> PruneSizes::timing() const {
  if (!options.target.is_time()) return {};
  const auto device = path == ops::Path::cpu ? c10::Device(c10::kCPU) : c10::Device(c10::kCUDA);
  return {{"models of random weights that are timed",
           eval::token_times_bytes(config, eval::token_time_options(options.target.time, device))}};
}

std::vector<shard::MemoryItem> PruneSizes::largest_phase(bool offloaded) const {
  const auto total = [](const std::vector<shard::MemoryItem>& items) {
    std::int64_t bytes = 0;
    for (const auto& part : items) bytes += part.bytes;
    return bytes;
  };
  auto largest = making(offloaded);
  for (auto& other : {ranking(offloaded), search(offloaded), timing()})
    if (total(other) > total(largest)) largest = other;
  return largest;
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
  work.times_parts = options.target.is_time();
  work.nearest_parameters = work.times_parts ? 0 : space.nearest_size().value_or(0);
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
  if (work.times_parts) text = "times parts of the model, of which the sizes that reach the target follow; ";
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

// The model that is made; where it is fitted, also as it was; beside them the best one, while others that are
// tied with it are made.  A step ranks what is left as a model of its own, before the first one all of it.
std::int64_t most_made_parameters(const architecture::Config& config, const PruneOptions& options) {
  const std::int64_t fitted = options.compensate && options.narrows() ? 2 : 1;
  const std::int64_t models = fitted + (!options.stepwise() && options.search.finalists > 1 ? 1 : 0);
  return std::max(models * target_parameters(config, options),
                  options.stepwise() ? architecture::num_parameters(config) : 0);
}

shard::MemoryPlan plan_prune(const architecture::Config& config, std::int64_t item_bytes,
                             const TextTokens& text, std::int64_t batch_tokens, const PruneOptions& options,
                             const HiddenStates& states, bool offloaded, ops::Path path) {
  const PruneSizes sizes{config, item_bytes, text, batch_tokens, options, states.on_disk, path};
  const bool fits = wants_after_compensation(options);
  const auto fitted = fits ? compress::compensated_bytes(config, item_bytes) : compress::CompensatedBytes{};
  const auto weights = offloaded ? calibrate::OnDevice::block_and_head : calibrate::OnDevice::all;
  shard::MemoryPlan plan{
      {calibrate::planned_weights(kInputWeights, config, item_bytes, weights),
       {"outputs, distributions and positions of the text",
        sizes.states_of(text.choosing) +
            calibrate::top_k_bytes(text.choosing, config.vocab_size, item_bytes) +
            (text.all + text.choosing) * (sizes.head_dim() * 4 + 64)},
       {kSharedStates,
        std::min(states.cache_bytes,
                 kCachedCandidates * calibrate::bytes_of_states(config, item_bytes, text.choosing))},
       {"sums for compensation", fitted.sums},
       {kRecentWeights, fits ? std::min(fitted.weights, sizes.weights_of_candidates()) : 0}},
      base::join("lower calibration_tokens or sequence_length, ",
                 fits ? "set search.after_compensation: false, " : "", "or use a machine with more")};
  auto items = sizes.largest_phase(offloaded);
  std::move(items.begin(), items.end(), std::back_inserter(plan.items));
  return plan;
}

PrunePlan plan_prune_within(std::int64_t memory_bytes, bool may_use_disk, const architecture::Config& config,
                            std::int64_t item_bytes, const TextTokens& text, std::int64_t batch_tokens,
                            const PruneOptions& options, bool offloaded, ops::Path path) {
  HiddenStates states;
  const auto plan = [&] {
    return plan_prune(config, item_bytes, text, batch_tokens, options, states, offloaded, path);
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

namespace {

void say_times(const PruneSetup& setup, const Size& size, std::int64_t target) {
  const auto& asked = setup.options.target.time;
  if (!asked.is_given()) return;
  setup.observer.message(record::Level::info,
                         base::join("prune: the whole model takes ", size.text(size.of(setup.input.config)),
                                    " by its parts (batch ", asked.batch, ", context ", asked.context, ", ",
                                    size.times()->dtype(), "), the target is ", size.text(target), "."));
}

}  // namespace

ResolvedPlan resolved(const PruneSetup& setup, const Size& size, std::int64_t batch_tokens) {
  const auto& input = setup.input;
  const auto& options = setup.options;
  const auto parameters = target_parameters(input.config, options);
  const auto target = target_of(input.config, options, size);
  say_times(setup, size, target);
  std::int64_t longest = 0;
  const auto together = std::max(batch_tokens, compress::CompensationOptions{}.batch_tokens);
  for (const auto& batch : calibrate::batch_places(setup.sources, input.config.vocab_size, together))
    longest = std::max(longest, batch.tokens);
  auto split = calibrate::split_by_document(setup.sources, shares_of(options));
  const auto search = search_tokens(input.config, options, split, batch_tokens);
  const auto scratch = setup.place.saved_file.parent_path();
  const auto memory = setup.place.memory;
  const auto text = tokens_of(split);
  const auto [states, plan] =
      plan_prune_within(memory, !scratch.empty(), input.config, input.item_bytes(), text, longest, options,
                        input.offload != nullptr, ops::path_of(input.options().device()));
  setup.observer.message(record::Level::info, "prune: memory, at most:\n" + shard::describe(plan));
  setup.observer.message(record::Level::info,
                         "prune: " + describe(work_of(input.config, text.all, options, search)) + ".");
  if (memory > 0) shard::require_fits(plan, memory);
  for (const auto& warning : calibrate::warnings_of_cut(split, "prune", "f looks smaller than it is"))
    setup.observer.message(record::Level::warning, warning);
  warn_of_little_text(setup, split);
  return {.target_parameters = parameters,
          .size = size,
          .target = target,
          .budget_tokens = search.most,
          .text = std::move(split),
          .ranking = ranking_options(options),
          .evaluation = {.weights = options.objective,
                         .cache_bytes = states.cache_bytes,
                         .batch_tokens = batch_tokens,
                         .scratch = scratch,
                         .hidden_scratch = states.on_disk ? scratch : base::Path(),
                         .observer = &setup.observer},
          .memory_bytes = plan.total_bytes(),
          .candidates_bytes = plan.bytes_of(kSharedStates) + plan.bytes_of(kRecentWeights)};
}

Evaluator evaluator_of_candidates(const PruneSetup& setup, const ResolvedPlan& plan) {
  auto options = plan.evaluation;
  options.group = setup.group;
  if (wants_after_compensation(setup.options)) options.fitted = &plan.text.fitted;
  return Evaluator(setup.input, plan.text.choosing, options);
}

}  // namespace retort::prune
