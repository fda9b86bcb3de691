#include "retort/prune/plan.h"

#include <algorithm>

#include "retort/architecture/counts.h"
#include "retort/architecture/layout.h"
#include "retort/base/error.h"
#include "retort/calibrate/histogram.h"
#include "retort/calibrate/ranking.h"
#include "retort/calibrate/state_bytes.h"
#include "retort/compress/compensated_layers.h"
#include "retort/prune/evaluator.h"
#include "retort/prune/moves.h"
#include "retort/prune/part_scores.h"

namespace retort::prune {
namespace {

constexpr std::int64_t kHiddenStreams =
    4;  // of a prune stage: the input's outputs, and the three models of its compensation
// In matrices of columns x columns: sums of fit and guard for all and for kept inputs, the damped ones and
// their factor; without compensation a ranking's products.
constexpr std::int64_t kFitSquares = 6, kRankingSquares = 2;  // obs inverts, as a fit does

// Of one unit after the other, with the inputs of all blocks of a batch.
std::int64_t gradient_bytes(const architecture::Config& config, std::int64_t item_bytes,
                            std::int64_t batch_tokens, const PruneOptions& options) {
  if (!ranking_options(options).uses(calibrate::ChannelRanking::taylor)) return 0;
  std::int64_t largest = 0;
  for (const auto& unit : architecture::make_layout(config).units) largest = std::max(largest, unit.numel());
  return 2 * largest * item_bytes + calibrate::bytes_of_states(config, item_bytes, batch_tokens) +
         2 * calibrate::activation_bytes(config, item_bytes, batch_tokens);
}

}  // namespace

shard::MemoryPlan plan_prune(const architecture::Config& config, std::int64_t item_bytes,
                             std::int64_t text_tokens, std::int64_t batch_tokens, const PruneOptions& options,
                             const HiddenStates& states) {
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
  const auto streams =
      kHiddenStreams * (on_disk ? 2 * batch_tokens : text_tokens) + (on_disk ? text_tokens : 0);
  const auto rows = std::min(
      std::max(chunk_rows(config.vocab_size), compress::CompensationOptions{}.batch_tokens), batch_tokens);
  // A step ranks what is left as a model of its own, before the first one all of it.
  const auto all = architecture::num_parameters(config);
  const auto copies = std::max(2 * target_parameters(config, options), options.stepwise() ? all : 0);
  return {{{"weights, as they come and as they get", (all + copies) * item_bytes},
           {on_disk ? "hidden states, most of them on disk" : "hidden states", streams * hidden},
           {"hidden states shared by candidates",
            std::min(states.cache_bytes,
                     kCachedCandidates * calibrate::bytes_of_states(config, item_bytes, text_tokens))},
           {"distributions and positions of the text",
            text_tokens * (std::min(kTopK, config.vocab_size) * 8 + head_dim * 4 + 64)},
           {"sums for compensation", fitted.sums},
           {"weights of recent candidates", fitted.weights},
           {"work on a layer", (inverts ? kFitSquares : kRankingSquares) * widest * widest * 8 +
                                   3 * widest * calibrate::kBuckets * 8},
           {"gradients", gradient_bytes(config, item_bytes, batch_tokens, options)},
           {"activations of a batch", calibrate::activation_bytes(config, item_bytes, batch_tokens)},
           {"logits", calibrate::logit_bytes(config, rows)}},
          base::join("lower calibration_tokens or sequence_length, ",
                     fits ? "set search.after_compensation: false, " : "", "or use a machine with more")};
}

PrunePlan plan_prune_within(std::int64_t memory_bytes, bool may_use_disk, const architecture::Config& config,
                            std::int64_t item_bytes, std::int64_t text_tokens, std::int64_t batch_tokens,
                            const PruneOptions& options) {
  HiddenStates states;
  const auto plan = [&] {
    return plan_prune(config, item_bytes, text_tokens, batch_tokens, options, states);
  };
  const auto excess = [&] {
    return memory_bytes > 0 ? std::max<std::int64_t>(plan().total_bytes() - memory_bytes, 0) : 0;
  };
  states.on_disk = excess() > 0 && may_use_disk;
  states.cache_bytes = std::min(
      states.cache_bytes, kCachedCandidates * calibrate::bytes_of_states(config, item_bytes, text_tokens));
  states.cache_bytes -= std::min(states.cache_bytes, excess());
  return {states, plan()};
}

ResolvedPlan resolved(const PruneSetup& setup, std::int64_t batch_tokens) {
  const auto& input = setup.input;
  const auto& options = setup.options;
  const auto target = target_parameters(input.config, options);
  std::int64_t text = 0, longest = 0;
  for (const auto& batch : calibrate::batch_places(setup.sources, input.config.vocab_size, batch_tokens)) {
    text += batch.tokens;
    longest = std::max(longest, batch.tokens);
  }
  const auto scratch = setup.place.saved_file.parent_path();
  const auto memory = setup.place.memory;
  const auto [states, plan] =
      plan_prune_within(memory, !scratch.empty(), input.config, input.item_bytes(), text, longest, options);
  setup.observer.message(record::Level::info, "prune: memory, at most:\n" + shard::describe(plan));
  if (memory > 0) shard::require_fits(plan, memory);
  return {.target_parameters = target,
          .ranking = ranking_options(options),
          .evaluation = {.weights = options.objective,
                         .cache_bytes = states.cache_bytes,
                         .batch_tokens = batch_tokens,
                         .after_compensation = wants_after_compensation(options),
                         .scratch = scratch,
                         .hidden_scratch = states.on_disk ? scratch : base::Path(),
                         .observer = &setup.observer},
          .memory_bytes = plan.total_bytes()};
}

}  // namespace retort::prune
