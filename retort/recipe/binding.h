#pragma once
// The keys of a recipe: each is named here and nowhere else.

#include "retort/recipe/binder.h"
#include "retort/recipe/recipe.h"

namespace retort::recipe {

/// Visits every field; where a Binder reads, the checks between fields are made as well.
void bind(Binder& binder, Recipe& recipe);

}  // namespace retort::recipe
