#pragma once
// The memory of prune and sparsify stages, known before they begin.

#include "retort/architecture/config.h"
#include "retort/prune/objective.h"
#include "retort/prune/options.h"
#include "retort/shard/memory_plan.h"

namespace retort::prune {

/// Where a prune stage has its hidden states.
struct HiddenStates {
  bool on_disk = false;                    ///< those of the text are in files
  std::int64_t cache_bytes = kCacheBytes;  ///< at most, for those that candidates share
};

/// `text_tokens` of all domains, `batch_tokens` of the longest batch.  Throws UsageError for an impossible
/// target.
shard::MemoryPlan plan_prune(const architecture::Config& config, std::int64_t item_bytes,
                             std::int64_t text_tokens, std::int64_t batch_tokens, const PruneOptions& options,
                             const HiddenStates& states);

struct PrunePlan {
  HiddenStates states;
  shard::MemoryPlan memory;
};
/// The states for which the plan fits into `memory_bytes` (0: any amount), else the least: first those of the
/// text go to disk, if they may, which are read once a block; then fewer are shared, which every candidate
/// reads.
PrunePlan plan_prune_within(std::int64_t memory_bytes, bool may_use_disk, const architecture::Config& config,
                            std::int64_t item_bytes, std::int64_t text_tokens, std::int64_t batch_tokens,
                            const PruneOptions& options);

/// Tokens of the parts of text_parts.h.
struct TextTokens {
  std::int64_t fitted = 0, choosing = 0, judging = 0;
  std::int64_t batch = 0;  ///< of the longest batch
};

/// What split_by_document makes of `tokens` at most, unless a text repeats its documents: the last document
/// of a part may be a quarter of the text.
TextTokens most_tokens(const SparsifyOptions& options, std::int64_t tokens);

/// `on_disk`: hidden states of the text that is fitted to are in a file.
shard::MemoryPlan plan_sparsify(const architecture::Config& config, std::int64_t item_bytes,
                                const TextTokens& text, const SparsifyOptions& options, bool on_disk);

}  // namespace retort::prune
