#pragma once
// The memory of scoring and of generation, known before a model is loaded.

#include <functional>
#include <string>
#include <vector>

#include "retort/architecture/config.h"
#include "retort/eval/evaluate.h"
#include "retort/eval/generate_texts.h"
#include "retort/ops/path.h"
#include "retort/shard/memory_plan.h"

namespace retort::eval {

/// Items of the plans.
inline constexpr auto kModelWeights = "model weights", kTeacherWeights = "teacher weights";

/// Of evaluate_source in windows of `context` tokens, where operations take `path`.  `teacher` may be null,
/// or the model itself, which is then loaded once.
shard::MemoryPlan plan_scoring(const architecture::Config& model, const architecture::Config* teacher,
                               std::int64_t item_bytes, std::int64_t context, ops::Path path,
                               const BatchSettings& batch = {});

/// What a rank gathers of others while it scores a model that lies over several, bytes; `teacher`: as of
/// plan_scoring.
std::int64_t gathered_bytes(const architecture::Config& model, const architecture::Config* teacher,
                            std::int64_t item_bytes);

/// Of losses on `tokens` held-out tokens together, in chunks of `head_rows` logits, beside a model's weights,
/// bytes; `sequence_tokens` of the longest segment.
std::int64_t held_out_bytes(const architecture::Config& model, std::int64_t item_bytes, std::int64_t tokens,
                            std::int64_t sequence_tokens, std::int64_t head_rows, ops::Path path);

/// Where TextWeights come from: a file, weights that stay in memory, or ranks that hold parts of them.
enum class WeightsFrom { file, memory, ranks };

/// Of generate_texts().
shard::MemoryPlan plan_texts(const architecture::Config& config, std::int64_t item_bytes,
                             std::span<const Prompt> prompts, const TextsOptions& options, ops::Path path,
                             WeightsFrom from);

/// That plan, with advice for `available_bytes`: how many texts at once would fit.
shard::MemoryPlan plan_texts_within(std::int64_t available_bytes, const architecture::Config& config,
                                    std::int64_t item_bytes, std::span<const Prompt> prompts,
                                    const TextsOptions& options, ops::Path path, WeightsFrom from);

/// The largest number from 1 to `most` whose plan fits; 0: none does.  A plan grows with its number.
std::int64_t most_that_fit(std::int64_t available_bytes, std::int64_t most,
                           const std::function<shard::MemoryPlan(std::int64_t)>& plan_of);

/// Of models that stay loaded while one of them at a time makes texts.
class PlanOfLoadedModels {
 public:
  /// Of a model that is called `name`, by plans of all that it will make.
  void add(const std::string& name, const std::vector<shard::MemoryPlan>& plans);
  /// Weights of all, and the rest of the model and the texts that take most of it.
  shard::MemoryPlan plan() const;

 private:
  std::vector<shard::MemoryItem> weights_, rest_;
};

/// Of a conversation of so many tokens, by weights from a file.
shard::MemoryPlan plan_chat(const architecture::Config& config, std::int64_t item_bytes, std::int64_t tokens,
                            ops::Path path);

}  // namespace retort::eval
