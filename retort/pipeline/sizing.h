#pragma once
// What a recipe's stages take from files of `retort bench gemm`.

#include <c10/core/Device.h>

#include <string>

#include "retort/pipeline/known_models.h"
#include "retort/recipe/recipe.h"
#include "retort/record/observer.h"

namespace retort::pipeline {

/// Gives every prune stage that names a file of sizes, and no width_multiple, the one that the file advises
/// for models that compute in `dtype`, but not less than prune::kUsualWidthMultiple.  Warns where the file is
/// of another machine or model, and where a width_multiple of the recipe runs badly.  Throws DataError for a
/// damaged file and UsageError for one without `dtype`.
void settle_widths(recipe::Recipe& recipe, const KnownModels& models, const std::string& dtype,
                   c10::Device device, record::Observer& observer);

}  // namespace retort::pipeline
