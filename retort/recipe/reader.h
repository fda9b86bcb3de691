#pragma once
// Reads a recipe from a tree of values and collects every mistake on the way.

#include <string>
#include <vector>

#include "retort/recipe/document.h"
#include "retort/recipe/recipe.h"

namespace retort::recipe {

/// Fills `recipe`; returns one sentence per mistake, in the order of the keys' binding.
std::vector<std::string> read(const Value& root, Recipe& recipe);

}  // namespace retort::recipe
