#include "retort/prune/stage_plans.h"

#include <algorithm>

#include "retort/architecture/counts.h"
#include "retort/architecture/layout.h"
#include "retort/base/error.h"
#include "retort/prune/compensated_layers.h"
#include "retort/prune/damage.h"
#include "retort/prune/hessian.h"
#include "retort/prune/histogram.h"
#include "retort/prune/moves.h"
#include "retort/prune/objective.h"
#include "retort/prune/ranking.h"

namespace retort::prune {
namespace {

// What lives at once, at most, in matrices of columns x columns: the Hessians of fit and guard, the damped
// one and its factor while layers are worked on; beside them the sums, or what the factorisation is made
// from.
constexpr std::int64_t kLastingSquares = 4, kPassingSquares = 4;
constexpr std::int64_t kLayerMatrices =
    12;  // of a layer's shape: original, swept, errors, conjugate gradients
constexpr std::int64_t kHiddenStreams =
    4;  // of a prune stage: the input's outputs, and the three models of its compensation
// In matrices of columns x columns: sums of fit and guard for all and for kept inputs, the damped ones and
// their factor; without compensation a ranking's products.
constexpr std::int64_t kFitSquares = 6, kRankingSquares = 2;  // obs inverts, as a fit does
constexpr std::int64_t kLogitMatrices = 6;  // of rows x vocabulary: both models' logits and their differences

bool is_chosen(const architecture::Tensor& tensor, const SparsifyOptions& options) {
  if (!tensor.is_matrix()) return false;
  const auto is_named = [&](const std::string& layer) {
    return tensor.name.ends_with("." + layer + ".weight");
  };
  return options.layers.empty() || std::any_of(options.layers.begin(), options.layers.end(), is_named);
}

std::int64_t activation_elements(const architecture::Config& config) {
  std::int64_t most = 0;
  for (const auto& block : config.blocks) {
    const auto& heads = block.attention;
    const auto projected = heads ? (2 * heads->num_heads + 2 * heads->num_kv_heads) * heads->head_dim : 0;
    most = std::max({most, projected, 3 * mlp_width(block)});
  }
  return most + 6 * config.hidden_size;
}

// Of one unit after the other, with the inputs of all blocks of a batch.
std::int64_t gradient_bytes(const architecture::Config& config, std::int64_t item_bytes,
                            std::int64_t batch_tokens, const PruneOptions& options) {
  if (!ranking_options(options).uses(ChannelRanking::taylor)) return 0;
  std::int64_t largest = 0;
  for (const auto& unit : architecture::make_layout(config).units) largest = std::max(largest, unit.numel());
  return 2 * largest * item_bytes + bytes_of_states(config, item_bytes, batch_tokens) +
         2 * batch_tokens * activation_elements(config) * item_bytes;
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
  const bool inverts = options.compensate || ranking_options(options).uses(ChannelRanking::obs);
  const auto fitted = fits ? compensated_bytes(config, item_bytes) : CompensatedBytes{};
  const auto streams =
      kHiddenStreams * (on_disk ? 2 * batch_tokens : text_tokens) + (on_disk ? text_tokens : 0);
  const auto rows =
      std::min(std::max(chunk_rows(config.vocab_size), CompensationOptions{}.batch_tokens), batch_tokens);
  // A step ranks what is left as a model of its own, before the first one all of it.
  const auto all = architecture::num_parameters(config);
  const auto copies = std::max(2 * target_parameters(config, options), options.stepwise() ? all : 0);
  return {
      {{"weights, as they come and as they get", (all + copies) * item_bytes},
       {on_disk ? "hidden states, most of them on disk" : "hidden states", streams * hidden},
       {"hidden states shared by candidates",
        std::min(states.cache_bytes, kCachedCandidates * bytes_of_states(config, item_bytes, text_tokens))},
       {"distributions and positions of the text",
        text_tokens * (std::min(kTopK, config.vocab_size) * 8 + head_dim * 4 + 64)},
       {"sums for compensation", fitted.sums},
       {"weights of recent candidates", fitted.weights},
       {"work on a layer",
        (inverts ? kFitSquares : kRankingSquares) * widest * widest * 8 + 3 * widest * kBuckets * 8},
       {"gradients", gradient_bytes(config, item_bytes, batch_tokens, options)},
       {"activations of a batch", batch_tokens * activation_elements(config) * item_bytes},
       {"logits", kLogitMatrices * rows * config.vocab_size * 4}},
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
  states.cache_bytes =
      std::min(states.cache_bytes, kCachedCandidates * bytes_of_states(config, item_bytes, text_tokens));
  states.cache_bytes -= std::min(states.cache_bytes, excess());
  return {states, plan()};
}

TextTokens most_tokens(const SparsifyOptions& options, std::int64_t tokens) {
  const auto part = tokens / 8 + tokens / 4;
  return {.fitted = tokens,
          .choosing = part,
          .judging = part,
          .batch = std::min(tokens, std::max(kCalibrationBatchTokens, options.sequence_length))};
}

shard::MemoryPlan plan_sparsify(const architecture::Config& config, std::int64_t item_bytes,
                                const TextTokens& text, const SparsifyOptions& options, bool on_disk) {
  std::int64_t squares = 0, work = 0;
  for (const auto& unit : architecture::make_layout(config).units)
    for (const auto& tensor : unit.tensors) {
      if (unit.block_index < 0 || !is_chosen(tensor, options)) continue;
      const std::int64_t cols = tensor.cols(), wide = cols <= kDoubleColumns || item_bytes == 8 ? 8 : 4;
      squares = std::max(squares, kLastingSquares * cols * cols * wide);
      work = std::max({work, kPassingSquares * cols * cols * wide, kLayerMatrices * tensor.numel * wide});
    }
  const auto hidden = config.hidden_size * item_bytes;
  const auto at_hand = (on_disk ? 2 * text.batch : text.fitted) + text.choosing + text.judging;
  const auto referred = std::max(options.share < 1 ? text.choosing : 0, text.judging);
  return {{{"weights, as they come and as they get", 2 * architecture::num_parameters(config) * item_bytes},
           {on_disk ? "hidden states, most of them on disk" : "hidden states", at_hand * hidden},
           {"outputs of the model as it came", referred * hidden},
           {"Hessians and factor", squares},
           {"work on a layer", work},
           {"activations of a batch", text.batch * activation_elements(config) * item_bytes},
           {"logits", kLogitMatrices * std::min(kDamageRows, text.batch) * config.vocab_size * 4}},
          "lower calibration_tokens, leave the widest layers out, or use a machine with more"};
}

}  // namespace retort::prune
