#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/library.h"
#include "cli/print.h"
#include "cli/ranks.h"
#include "cli/recipe_source.h"
#include "cli/standard_streams.h"
#include "retort/base/printable.h"
#include "retort/comm/launch/launch.h"
#include "retort/comm/shared/arena.h"
#include "retort/record/provenance.h"
#include "retort/record/run_contents.h"

namespace retort::cli {
namespace {

struct RunOptions {
  RecipeSource source;
  std::string run_dir;
  std::string stage;
  int ranks = 0;
  bool dry_run = false;
  bool print_recipe = false;
  bool json = false;
  Verbosity verbosity = Verbosity::normal;
};

recipe::Recipe checked_recipe(const RunOptions& options) {
  auto recipe = read(options.source);
  if (!options.stage.empty()) (void)recipe.stage(options.stage);
  return recipe;
}

base::Path run_directory_of(const RunOptions& options) {
  return options.run_dir.empty() ? base::Path("runs") / name_of(options.source) : base::Path(options.run_dir);
}

void print_for_people(const pipeline::RunOutcome& outcome) {
  std::cout << outcome.summary;
  if (!outcome.report.empty()) std::cout << "report: " << base::printable(outcome.report.native()) << '\n';
}

// What scripts ask for: did it finish, where is what it made, and the result of each stage.
base::Json as_json(const pipeline::RunOutcome& outcome, const pipeline::RunRequest& request) {
  base::Json json = {{"finished", outcome.finished}, {"stage", outcome.stage}};
  if (request.dry_run) {
    json["plan"] = outcome.summary;
    return json;
  }
  json["run_directory"] = base::as_utf8(request.run_directory.native());
  json["report"] = base::as_utf8(outcome.report.native());
  json["results"] = base::Json::object();
  for (const auto& stage : record::read_run(request.run_directory).stages)
    if (!stage.result.is_null()) json["results"][stage.name] = stage.result;
  return json;
}

base::ExitCode run_recipe(const recipe::Recipe& recipe, const RunOptions& options, comm::Group& group,
                          record::Observer& observer) {
  pipeline::RunRequest request;
  request.group = &group;
  request.run_directory = run_directory_of(options);
  request.only_stage = options.stage;
  request.dry_run = options.dry_run;
  request.command = command_line();
  const pipeline::RunOutcome outcome = library().run(recipe, request, observer);
  if (options.json && group.rank() == 0)
    print(std::cout, as_json(outcome, request), true);
  else if (!options.json)
    print_for_people(outcome);
  if (outcome.finished) return base::ExitCode::ok;
  observer.message(record::Level::info,
                   base::join("stopped in stage ", outcome.stage,
                              ", what was done is saved; the same command again goes on from here"));
  return base::ExitCode::stopped;
}

base::ExitCode run(const RunOptions& options) {
  go_on_without_reader();
  const auto by = comm::launcher();
  const bool alone = by == comm::Launcher::none;
  base::require<base::UsageError>(options.ranks == 0 || alone || by == comm::Launcher::own,
                                  "--ranks: mpirun has started ranks already; leave --ranks out.");
  if (options.print_recipe) {
    std::cout << recipe::to_yaml(checked_recipe(options));
    return base::ExitCode::ok;
  }
  if (alone && options.ranks > 1) {
    (void)checked_recipe(options);  // so that a mistake starts nothing
    return run_ranks(options.ranks, run_directory_of(options));
  }
  const auto group = comm::world_group(say_last_words);
  return as_rank(*group, options.verbosity, [&](record::Observer& observer) {
    recipe::Recipe recipe;
    group->agree([&] { recipe = checked_recipe(options); });
    require_same_on_all_ranks(*group, "the program", record::long_version());
    require_same_on_all_ranks(*group, "the recipe", recipe::to_yaml(recipe));
    return run_recipe(recipe, options, *group, observer);
  });
}

}  // namespace

Action declare_run(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  retort run                                    the quickstart, in runs/quickstart\n"
      "  retort run recipes/europa.yaml --run-dir /scratch/europa\n"
      "  retort run my.yaml --set stages.student.optim.lr=1e-5 --set stages.student.tokens=2M\n"
      "  retort run my.yaml --ranks 4                  as four processes of this machine\n"
      "  retort run my.yaml --dry-run                  check the recipe and plan memory, change nothing\n"
      "  retort run my.yaml --json | jq .results.scores.models[0].mean.perplexity\n"
      "The same command again goes on where the run stopped.  Ctrl-C finishes the step and saves.");
  auto options = std::make_shared<RunOptions>();
  add_recipe_source(app, options->source);
  app.add_option("--run-dir", options->run_dir, "Directory of the run; default: runs/ and the recipe's name");
  app.add_option("--stage", options->stage, "Only this stage");
  app.add_option("--ranks", options->ranks, "Processes that run it together on this machine; default: one")
      ->check(CLI::Range(1, comm::kMostLocalRanks));
  app.add_flag("--dry-run", options->dry_run, "Check and plan, change nothing");
  app.add_flag("--json", options->json, "Print the results of all stages as JSON, on one line");
  app.add_flag("--print-recipe", options->print_recipe, "Print the recipe with all defaults and end");
  add_verbosity(app, options->verbosity);
  return [options] { return run(*options); };
}

}  // namespace retort::cli
