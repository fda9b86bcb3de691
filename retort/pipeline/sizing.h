#pragma once
// The widths that a recipe leaves to its models and to files of `retort bench gemm`.

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <string>

#include "retort/comm/group.h"
#include "retort/eval/speed_table.h"
#include "retort/pipeline/known_models.h"
#include "retort/recipe/recipe.h"
#include "retort/record/observer.h"

namespace retort::pipeline {

/// Gives every prune stage without a width_multiple that of its model, prune::usual_width_multiple(), and
/// where it names a file of sizes the next one that the file advises for models that compute in `dtype`.
/// Warns where the file is of another machine or model, and where a width_multiple of the recipe runs badly.
/// Throws ModelError, DataError for a damaged file and UsageError for one without `dtype`.
void settle_widths(recipe::Recipe& recipe, const KnownModels& models, const std::string& dtype,
                   c10::Device device, record::Observer& observer);

/// The rate of products in float32 that the stage's file of sizes has: for plans of the machine that it is
/// of. Nothing without a file, or without that type in it.  Throws DataError for a damaged file.
std::optional<double> sized_flops_per_second(const recipe::Stage& stage);

/// The machine that the stage's file of sizes is of, with its rates in `dtype`, if the file is of another one
/// than this: models of the stage are going to run there.  Throws as settle_widths().
std::optional<eval::OtherMachine> other_machine(const recipe::Stage& stage, c10::ScalarType dtype,
                                                c10::Device device);

/// Gives every rank the widths that rank 0 has settled.  Collective.
void share_widths(recipe::Recipe& recipe, comm::Group& group);

}  // namespace retort::pipeline
