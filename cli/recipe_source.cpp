#include "cli/recipe_source.h"

#include <CLI/CLI.hpp>

namespace retort::cli {
namespace {

constexpr const char* kQuickstart = "quickstart";

bool embedded(const RecipeSource& source) {
  return source.file.empty() || source.file == kQuickstart;
}

}  // namespace

void add_place(CLI::App& app, std::string& device, std::string& dtype) {
  app.add_option("--device", device, "Where models run: cpu, cuda or privateuseone")
      ->check(CLI::IsMember({"cpu", "cuda", "privateuseone"}));
  app.add_option("--dtype", dtype, "Of computing: auto, fp32 or bf16")
      ->check(CLI::IsMember({"auto", "fp32", "bf16"}));
}

void add_recipe_source(CLI::App& app, RecipeSource& source) {
  app.add_option("RECIPE", source.file, "Recipe file; without one, the quickstart inside the program");
  app.add_option("--set", source.overrides,
                 "Override a key, for example stages.student.optim.lr=1e-5; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  add_place(app, source.device, source.dtype);
}

recipe::Recipe read(const RecipeSource& source) {
  std::vector<std::string> overrides = source.overrides;
  if (!source.device.empty()) overrides.push_back("device=" + source.device);
  if (!source.dtype.empty()) overrides.push_back("dtype=" + source.dtype);
  if (embedded(source)) return recipe::parse_recipe(recipe::quickstart(), kQuickstart, overrides);
  return recipe::read_recipe(source.file, overrides);
}

std::string name_of(const RecipeSource& source) {
  return embedded(source) ? kQuickstart : base::Path(source.file).stem().string();
}

}  // namespace retort::cli
