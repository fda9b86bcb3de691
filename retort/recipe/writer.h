#pragma once
// Writes a recipe with all its values.

#include <string>

#include "retort/base/json.h"
#include "retort/recipe/recipe.h"

namespace retort::recipe {

/// A resolved recipe's JSON, with data and stages keyed by name, as YAML text that reads back equal.
std::string yaml_of(const base::Json& resolved);

}  // namespace retort::recipe
