#pragma once
// The memory of a sparsify stage, known before its first layer.

#include "retort/architecture/config.h"
#include "retort/prune/options.h"
#include "retort/shard/memory_plan.h"

namespace retort::prune {

/// Tokens of the parts of text_parts.h.
struct TextTokens {
  std::int64_t fitted = 0, choosing = 0, judging = 0;
  std::int64_t batch = 0;  ///< of the longest batch
};

/// What will be about right for a text that is as long as the options want.
TextTokens expected_tokens(const SparsifyOptions& options);

/// `on_disk`: hidden states of the text that is fitted to are in a file.
shard::MemoryPlan plan_sparsify(const architecture::Config& config, std::int64_t item_bytes,
                                const TextTokens& text, const SparsifyOptions& options, bool on_disk);

}  // namespace retort::prune
