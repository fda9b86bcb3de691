#pragma once
// Reads a recipe from a tree of values and collects every mistake on the way.

#include <cstddef>
#include <string>
#include <vector>

#include "retort/recipe/document.h"
#include "retort/recipe/recipe.h"

namespace retort::recipe {

/// So many mistakes are found before reading ends: a file with more is no recipe.
inline constexpr std::size_t kMaxMistakes = 100;

/// Fills `recipe`; returns one sentence per mistake, in the order of the keys' binding, at most kMaxMistakes.
std::vector<std::string> read(const Value& root, Recipe& recipe);

}  // namespace retort::recipe
