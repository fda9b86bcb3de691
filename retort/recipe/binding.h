#pragma once
// The keys of a recipe: each is named here and nowhere else.

#include "retort/recipe/binder.h"
#include "retort/recipe/recipe.h"

namespace retort::recipe {

/// Visits every field; where a Binder reads, the checks between fields are made as well.
void bind(Binder& binder, Recipe& recipe);

/// The words of StageKind in its order.
const Words& stage_kinds();

}  // namespace retort::recipe
