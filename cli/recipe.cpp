#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/print.h"
#include "cli/recipe_source.h"

namespace retort::cli {

Action declare_recipe(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  retort recipe keys                            every key with type, default and meaning\n"
      "  retort recipe show my.yaml --set seed=1       the recipe with all defaults, reusable as input\n"
      "  retort recipe show --source > my.yaml         the quickstart as it is written, to begin with");
  struct Options {
    RecipeSource source;
    bool verbatim = false;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  app.require_subcommand(1);
  CLI::App* keys = app.add_subcommand("keys", "Every key with type, default and meaning");
  CLI::App* show = app.add_subcommand("show", "A recipe with all defaults");
  add_recipe_source(*show, options->source);
  auto* source =
      show->add_flag("--source", options->verbatim, "The quickstart as it is written, with its comments");
  for (const char* other : {"RECIPE", "--set", "--device", "--dtype"})
    source->excludes(show->get_option(other));
  show->add_flag("--json", options->json, "Print JSON, with data and stages keyed by name");
  return [options, keys] {
    if (keys->parsed())
      std::cout << recipe::describe_keys();
    else if (options->verbatim)
      std::cout << recipe::quickstart();
    else if (options->json)
      print(std::cout, recipe::to_json(read(options->source)), true);
    else
      std::cout << recipe::to_yaml(read(options->source));
    return base::ExitCode::ok;
  };
}

}  // namespace retort::cli
