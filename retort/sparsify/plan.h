#pragma once
// What a sparsify stage will do and need, known before it begins.

#include <string>
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

/// The most inputs of a layer that weights are fitted to; 0 where the method fits none.
std::int64_t widest_fitted(const architecture::Config& config, const SparsifyOptions& options);

/// Tokens of calibration text where the options say none: 16 fitted ones for each input of the widest layer
/// that is fitted.  Never fewer than 32,768.
std::int64_t calibration_tokens_of(const architecture::Config& config, const SparsifyOptions& options);

/// The text of a stage, the layers that it makes sparse, and what that takes.
struct SparsifyWork {
  std::int64_t text_tokens = 0;    ///< of calibration
  std::int64_t passed_tokens = 0;  ///< of forward passes of the model that take as long as the text's way
  std::int64_t tested_tokens = 0;  ///< of forward passes that measure layers alone, and one after the other
  std::int64_t layers = 0;
  std::int64_t fitted_inputs = 0;  ///< of the widest layer that is fitted; 0: nothing is fitted
  double flops = 0;                ///< of products that take as long as all of it
};
SparsifyWork work_of(const architecture::Config& config, std::int64_t text_tokens,
                     const SparsifyOptions& options);
/// A sentence without its end.
std::string describe(const SparsifyWork& work);

/// The item of the plan that ranks of a machine may hold in common.
inline constexpr std::string_view kSparsifiedWeights = "weights";

/// `on_disk`: hidden states of the text that is fitted to are in a file; `offloaded`: the weights are in the
/// memory of the machine, the rest on an accelerator.  Operations take `path`.
shard::MemoryPlan plan_sparsify(const architecture::Config& config, std::int64_t item_bytes,
                                const TextTokens& text, const SparsifyOptions& options, bool on_disk,
                                bool offloaded, ops::Path path);

}  // namespace retort::sparsify
