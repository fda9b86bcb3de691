#pragma once
// Reads a recipe from a tree of values and collects every mistake on the way.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "retort/recipe/document.h"
#include "retort/recipe/recipe.h"

namespace retort::recipe {

/// So many mistakes are found before reading ends: a file with more is no recipe.
inline constexpr std::size_t kMaxMistakes = 100;

/// A key that stages once had, and what a recipe does without it.
struct FormerKey {
  std::string_view key, advice;
};
std::span<const FormerKey> former_keys();

/// Fills `recipe`; returns one sentence per mistake, in the order of the keys' binding, at most kMaxMistakes.
std::vector<std::string> read(const Value& root, Recipe& recipe);

}  // namespace retort::recipe
