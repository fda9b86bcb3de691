#pragma once
// The recipe that a command line means.

#include <string>
#include <vector>

#include "retort/recipe/recipe.h"

namespace CLI {
class App;
}

namespace retort::cli {

struct RecipeSource {
  std::string file;  ///< empty or "quickstart": the recipe inside the program
  std::vector<std::string> overrides;
  std::string device;  ///< like --set device=...
  std::string dtype;
};

/// Adds [RECIPE], --set, --device and --dtype.
void add_recipe_source(CLI::App& app, RecipeSource& source);
/// Throws UsageError with all mistakes.
recipe::Recipe read(const RecipeSource& source);
/// "quickstart" for recipes/quickstart.yaml.
std::string name_of(const RecipeSource& source);

/// Adds --device and --dtype where a model runs.
void add_place(CLI::App& app, std::string& device, std::string& dtype);

}  // namespace retort::cli
