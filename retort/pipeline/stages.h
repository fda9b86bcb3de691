#pragma once
// One function per kind of stage; each reads its models, works, and leaves a model directory or a result.

#include <optional>

#include "retort/base/json.h"
#include "retort/pipeline/context.h"
#include "retort/recipe/recipe.h"

namespace retort::pipeline {

/// The stage's result, or nothing when it was stopped on request with its state saved.
std::optional<base::Json> run_train_stage(const Context& context, const recipe::Stage& stage);
base::Json run_prune_stage(const Context& context, const recipe::Stage& stage);
base::Json run_sparsify_stage(const Context& context, const recipe::Stage& stage);
base::Json run_evaluate_stage(const Context& context, const recipe::Stage& stage);

/// The memory of a training stage as far as its models are known before the run; empty when they are not.
std::string describe_memory(const recipe::Recipe& recipe, const recipe::Stage& stage);

}  // namespace retort::pipeline
