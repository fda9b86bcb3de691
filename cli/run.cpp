#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/interrupt.h"
#include "cli/library.h"
#include "cli/recipe_source.h"

namespace retort::cli {
namespace {

struct Options {
  RecipeSource source;
  std::string run_dir;
  std::string stage;
  bool dry_run = false;
  bool print_recipe = false;
  Verbosity verbosity = Verbosity::normal;
};

base::ExitCode run(const Options& options) {
  const recipe::Recipe recipe = read(options.source);
  if (!options.stage.empty()) recipe.stage(options.stage);
  if (options.print_recipe) {
    std::cout << recipe::to_yaml(recipe);
    return base::ExitCode::ok;
  }
  catch_interrupts();
  Console console(options.verbosity);
  pipeline::RunRequest request;
  request.run_directory =
      options.run_dir.empty() ? base::Path("runs") / name_of(options.source) : base::Path(options.run_dir);
  request.only_stage = options.stage;
  request.dry_run = options.dry_run;
  request.command = command_line();
  const pipeline::RunOutcome outcome = library().run(recipe, request, console);
  std::cout << outcome.summary;
  if (!outcome.report.empty()) std::cout << "report: " << outcome.report.string() << '\n';
  if (outcome.finished) return base::ExitCode::ok;
  console.message(record::Level::info,
                  base::join("stopped in stage ", outcome.stage,
                             ", what was done is saved; the same command again goes on from here"));
  return base::ExitCode::stopped;
}

}  // namespace

Action declare_run(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  retort run                                    the quickstart, in runs/quickstart\n"
      "  retort run recipes/europa.yaml --run-dir /scratch/europa\n"
      "  retort run my.yaml --set stages.student.optim.lr=1e-5 --set stages.student.tokens=2M\n"
      "  retort run my.yaml --dry-run                  check the recipe and plan memory, change nothing\n"
      "The same command again goes on where the run stopped.  Ctrl-C finishes the step and saves.");
  auto options = std::make_shared<Options>();
  add_recipe_source(app, options->source);
  app.add_option("--run-dir", options->run_dir, "Directory of the run; default: runs/ and the recipe's name");
  app.add_option("--stage", options->stage, "Only this stage");
  app.add_flag("--dry-run", options->dry_run, "Check and plan, change nothing");
  app.add_flag("--print-recipe", options->print_recipe, "Print the recipe with all defaults and end");
  add_verbosity(app, options->verbosity);
  return [options] { return run(*options); };
}

}  // namespace retort::cli
