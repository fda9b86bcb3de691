#pragma once
// What a prune stage will do and need, known before it begins.

#include "retort/architecture/config.h"
#include "retort/prune/evaluator.h"
#include "retort/prune/options.h"
#include "retort/prune/setup.h"
#include "retort/shard/memory_plan.h"

namespace retort::prune {

/// Where a prune stage has its hidden states.
struct HiddenStates {
  bool on_disk = false;                    ///< those of the text are in files
  std::int64_t cache_bytes = kCacheBytes;  ///< most bytes of the states that candidates share
};

/// Plans a stage with `text_tokens` in all sources and `batch_tokens` in the longest batch.  Throws
/// UsageError for an impossible target.
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

/// What the options of a stage mean for its model and text.
struct ResolvedPlan {
  std::int64_t target_parameters = 0;
  calibrate::RankingOptions ranking;
  EvaluatorOptions evaluation;    ///< how candidates are compared
  std::int64_t memory_bytes = 0;  ///< most that the stage needs
};
/// Resolves the options of a setup, whose candidates are passed through in batches of `batch_tokens`.  Says
/// what memory is needed and keeps hidden states on disk where it has to.  Throws MemoryError where even that
/// does not fit, UsageError for an impossible target, DataError for unusable text.
ResolvedPlan resolved(const PruneSetup& setup, std::int64_t batch_tokens);

}  // namespace retort::prune
