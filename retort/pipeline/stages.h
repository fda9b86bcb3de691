#pragma once
// One function per kind of stage; each reads its models, works, and leaves a model directory or a result.

#include <functional>
#include <optional>

#include "retort/base/json.h"
#include "retort/eval/options.h"
#include "retort/pipeline/context.h"
#include "retort/recipe/recipe.h"
#include "retort/shard/memory_plan.h"

namespace retort::pipeline {

/// The stage's result, or nothing when it was stopped on request with its state saved.
std::optional<base::Json> run_train_stage(const Context& context, const recipe::Stage& stage);
base::Json run_profile_stage(const Context& context, const recipe::Stage& stage);
base::Json run_prune_stage(const Context& context, const recipe::Stage& stage);
base::Json run_sparsify_stage(const Context& context, const recipe::Stage& stage);
/// Or nothing when it was stopped on request; nothing of it is kept.
std::optional<base::Json> run_evaluate_stage(const Context& context, const recipe::Stage& stage);

/// Distils each of the models for a while, and leaves the best of them as it came in.
std::optional<base::Json> run_select_stage(const Context& context, const recipe::Stage& stage);

/// How a select stage measures its students.
eval::EvaluateOptions measuring(const recipe::Stage& select);
/// Documents of the source that measures with the fewest, counted up to those that an interval needs.  Throws
/// DataError with what to set when a source has fewer than two.
std::int64_t require_documents(const recipe::Stage& select, const std::vector<data::SourceOptions>& sources,
                               const ModelText& text);

/// The stage that distils one of the models of a select stage.
recipe::Stage distillation_of(const recipe::Stage& select, const std::string& name, const std::string& from);

/// The memory of a stage when its models are known before the run begins: what the stage itself will plan, or
/// a little more where that depends on its text.
std::optional<shard::MemoryPlan> known_memory(const recipe::Recipe& recipe, const recipe::Stage& stage,
                                              at::ScalarType dtype, std::int64_t available_bytes);
/// The largest plan among the models of an evaluate stage; `config_of` has nothing for a model that is not
/// there yet.
using KnownConfig = std::function<std::optional<architecture::Config>(const std::string& model)>;
std::optional<shard::MemoryPlan> plan_evaluation(const recipe::Stage& stage, at::Device device,
                                                 const KnownConfig& config_of);
/// config.json of a stage that begins with random weights; throws ModelError.
architecture::Config starting_config(const recipe::Stage& stage);

}  // namespace retort::pipeline
