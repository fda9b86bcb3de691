#pragma once
// The memory of a sparsify stage, known before it begins.

#include <string_view>

#include "retort/architecture/config.h"
#include "retort/shard/memory_plan.h"
#include "retort/sparsify/options.h"

namespace retort::sparsify {

/// Tokens of the sides of split_text.h.
struct TextTokens {
  std::int64_t fitted = 0, choosing = 0, judging = 0;
  std::int64_t batch = 0;  ///< tokens of the longest batch
};

/// Returns the most that split_by_document makes of `tokens`, unless a text repeats its documents: the last
/// document of a side may be a quarter of the text.  One of `ranks` has its share of full batches; a text of
/// many short sources may give a rank more.
TextTokens most_tokens(const SparsifyOptions& options, std::int64_t tokens, std::int64_t ranks = 1);

/// The item of the plan that ranks of a machine may hold in common.
inline constexpr std::string_view kSparsifiedWeights = "weights";

/// `on_disk`: hidden states of the text that is fitted to are in a file.
shard::MemoryPlan plan_sparsify(const architecture::Config& config, std::int64_t item_bytes,
                                const TextTokens& text, const SparsifyOptions& options, bool on_disk);

}  // namespace retort::sparsify
