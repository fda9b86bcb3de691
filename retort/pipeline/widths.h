#pragma once
// The widths that a recipe leaves to its models.

#include "retort/comm/group.h"
#include "retort/pipeline/known_models.h"
#include "retort/recipe/recipe.h"

namespace retort::pipeline {

/// Gives every prune stage without a width_multiple that of its model, prune::usual_width_multiple(), or the
/// one that its run began with.  Throws ModelError.
void settle_widths(recipe::Recipe& recipe, const KnownModels& models);

/// Gives every rank the widths that rank 0 has settled.  Collective.
void share_widths(recipe::Recipe& recipe, comm::Group& group);

}  // namespace retort::pipeline
