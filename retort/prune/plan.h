#pragma once
// What a prune stage will do and need, known before it begins.

#include <cstdint>
#include <optional>

#include "retort/architecture/config.h"
#include "retort/calibrate/split_text.h"
#include "retort/prune/evaluator.h"
#include "retort/prune/options.h"
#include "retort/prune/setup.h"
#include "retort/prune/size.h"
#include "retort/shard/memory_plan.h"

namespace retort::prune {

/// Where a prune stage has its hidden states.
struct HiddenStates {
  bool on_disk = false;                    ///< those of the text are in files
  std::int64_t cache_bytes = kCacheBytes;  ///< most bytes of the states that candidates share
};

/// The plan's item of what all ranks of a machine hold between them.
inline constexpr const char* kInputWeights = "weights as they come";
/// Its items that a search fills as far as it gets.
inline constexpr const char *kSharedStates = "hidden states shared by candidates",
                            *kRecentWeights = "weights of recent candidates";

/// Tokens of all sources, and of what candidates are compared and the result is judged on.
struct TextTokens {
  std::int64_t all = 0, choosing = 0, judging = 0;
};
TextTokens tokens_of(const calibrate::TextSplit& text);
/// The most of each side before the documents are known, of which one may hold a quarter of the text.
TextTokens most_tokens(std::int64_t all, const PruneOptions& options);

/// Parameters of the models that a stage makes at once, at most.
std::int64_t most_made_parameters(const architecture::Config& config, const PruneOptions& options);

/// Plans a stage with `batch_tokens` in the longest batch.  `offloaded`: weights are in the memory of the
/// machine, the rest on an accelerator.  Operations take `path`.  Throws UsageError for an impossible target.
shard::MemoryPlan plan_prune(const architecture::Config& config, std::int64_t item_bytes,
                             const TextTokens& text, std::int64_t batch_tokens, const PruneOptions& options,
                             const HiddenStates& states, bool offloaded, ops::Path path);

/// Tokens of calibration text where the options say none: 24 fitted ones for each input of the widest layer
/// that is fitted, and never fewer than 32,768; 24,576 where nothing is fitted.
std::int64_t calibration_tokens_of(const architecture::Config& config, const PruneOptions& options);

/// What a prune stage ranks by; where all KV groups stay, they have no ranking of their own.
calibrate::RankingOptions ranking_options(const PruneOptions& options);

/// How the calibration text is divided: nothing is fitted to where layers stay or go whole.
calibrate::TextShares shares_of(const PruneOptions& options);

struct PrunePlan {
  HiddenStates states;
  shard::MemoryPlan memory;
};
/// The states for which the plan fits into `memory_bytes` (0: any amount), else the least: first those of the
/// text go to disk, if they may, which are read once a block; then fewer are shared, which every candidate
/// reads.
PrunePlan plan_prune_within(std::int64_t memory_bytes, bool may_use_disk, const architecture::Config& config,
                            std::int64_t item_bytes, const TextTokens& text, std::int64_t batch_tokens,
                            const PruneOptions& options, bool offloaded, ops::Path path);

/// What a search over a space passes through its model.
struct SearchTokens {
  std::int64_t most = 0;   ///< 0: no limit
  std::int64_t least = 0;  ///< before it has a model
  bool exact = false;      ///< `least` is of known documents, else the most that they may make it
};

/// The text of a stage and what passes through its model, in tokens.
struct PruneWork {
  std::int64_t text_tokens = 0;  ///< of calibration
  SearchTokens search = {};
  double compared_share = 0;  ///< of the text, on which the candidates of a step are compared; 0: no steps
  std::int64_t other_tokens = 0;   ///< before and after the search, as forward passes of the same time
  std::int64_t fitted_inputs = 0;  ///< of the widest layer that compensation fits; 0: nothing is fitted
  double least_flops = 0, most_flops = 0;  ///< of all of it, by what the method needs and what it may spend
  std::int64_t nearest_parameters =
      0;                     ///< of the size that takes the target's place, where units reach none there
  double nearest_share = 0;  ///< of the model
  bool times_parts = false;  ///< first, for a target that is a time
};
/// Without `search`, the most that it may come to with the documents yet unread.  Throws UsageError for a
/// target that a search cannot reach.
PruneWork work_of(const architecture::Config& config, std::int64_t text_tokens, const PruneOptions& options,
                  const std::optional<SearchTokens>& search = {});
/// A sentence without its end.
std::string describe(const PruneWork& work);

/// What the options of a stage mean for its model and text.
struct ResolvedPlan {
  std::int64_t target_parameters = 0;  ///< of a target that is a time, about
  Size size = {};                      ///< what the target limits
  std::int64_t target = 0;             ///< in it
  std::int64_t budget_tokens = 0;      ///< of a search over a space; 0: no limit
  calibrate::TextSplit text;
  calibrate::RankingOptions ranking;
  EvaluatorOptions evaluation;        ///< how candidates are compared, but for what compensation is fitted to
  std::int64_t memory_bytes = 0;      ///< most that the stage needs
  std::int64_t candidates_bytes = 0;  ///< of them, what a search may keep of candidates
};
/// Probes of each unit that a search learns from, at least, and the part of the text that they are on.
inline constexpr std::int32_t kLeastProbes = 2;
inline constexpr std::int64_t kFirstRungPart = 16;
/// Tokens that a candidate of a search passes together.
inline constexpr std::int64_t kSearchBatchTokens = 512;

/// Throws UsageError for an impossible target, or a budget that cannot pay the least search on this text.
void require_affordable(const architecture::Config& input, const std::vector<calibrate::SourceText>& sources,
                        const PruneOptions& options);

/// Resolves the options of a setup, whose candidates are passed through in batches of `batch_tokens`.  Says
/// what memory is needed and keeps hidden states on disk where it has to.  Throws MemoryError where even that
/// does not fit, UsageError for an impossible target or a budget that cannot pay the least search, DataError
/// for unusable text.
ResolvedPlan resolved(const PruneSetup& setup, const Size& size, std::int64_t batch_tokens);

/// Compares candidates on what the plan chooses by.  `setup` and `plan` have to outlive it.
Evaluator evaluator_of_candidates(const PruneSetup& setup, const ResolvedPlan& plan);

}  // namespace retort::prune
