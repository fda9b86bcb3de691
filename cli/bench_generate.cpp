#include "cli/bench_generate.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/bench_tables.h"
#include "cli/console.h"
#include "cli/library.h"
#include "cli/print.h"
#include "cli/rates_file.h"
#include "cli/recipe_source.h"
#include "retort/base/files.h"
#include "retort/report/generation_page.h"

namespace retort::cli {
namespace {

struct Options {
  pipeline::BenchGenerationRequest request;
  std::string out, html;
  Verbosity verbosity = Verbosity::normal;
  bool json = false;
};

void add_work_options(CLI::App& app, pipeline::BenchGenerationRequest& request) {
  auto* prompts =
      app.add_option("--prompts", request.prompts,
                     "JSONL file: {\"prompt\": TEXT} or {\"messages\": [...]} a line; without one "
                     "prompts are random ids");
  app.add_option("--prompt-tokens", request.prompt_tokens, "Of random prompts, one length after the other")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20))
      ->excludes(prompts);
  app.add_option("--texts", request.texts, "Random prompts of a run; default: as many as a batch holds")
      ->check(CLI::Range(1, 1 << 20))
      ->excludes(prompts);
  app.add_option("--batch", request.batches, "Texts that are made at once, one number after the other")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--new-tokens", request.new_tokens, "Of each text")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  app.add_flag("--free", request.free_length, "Texts end where the model ends them, so work differs");
  app.add_option("--runs", request.runs, "Of all prompts, of each model; at least 10 tell something")
      ->capture_default_str()
      ->check(CLI::Range(1, 20));
  app.add_option("--warmup", request.warmup, "Runs before that, which do not count")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000));
  app.add_flag("!--no-bos", request.bos, "Without the begin-of-text token before a prompt");
}

void add_options(CLI::App& app, Options& options) {
  auto& request = options.request;
  app.add_option("MODEL", request.models, "Model directories or GGUF files; the first is the baseline");
  app.add_option("--shape", request.shapes, "config.json of a further model, with random weights")
      ->allow_extra_args(false);
  app.add_option("--baseline", request.baseline, "The model that others are compared with");
  add_work_options(app, request);
  app.add_option("--out", options.out, "File for the times as JSON");
  app.add_option("--html", options.html, "File for a page with charts");
  app.add_flag("--json", options.json, "Print JSON");
  add_place(app, request.device, request.dtype);
  add_verbosity(app, options.verbosity);
}

bool is_same_file(const std::string& a, const std::string& b) {
  return std::filesystem::absolute(a).lexically_normal() == std::filesystem::absolute(b).lexically_normal();
}

void check_files(const Options& options) {
  const bool both = !options.out.empty() && !options.html.empty();
  base::require<base::UsageError>(!both || !is_same_file(options.out, options.html),
                                  "bench generate: --out and --html name the same file ", options.out,
                                  "; give each its own.");
  require_rates_file(options.out);
  require_page_file(options.html);
}

base::ExitCode measure(const Options& options) {
  Console console(options.verbosity);
  check_files(options);
  const base::Json rates = library().bench_generation(options.request, console);
  if (options.json)
    print(std::cout, rates, true);
  else
    std::cout << generation_tables(rates);
  for (const auto& conclusion : rates.at("conclusions"))
    if (conclusion.at("warns").get<bool>())
      console.message(record::Level::warning, "a smaller model is not always a faster one: " +
                                                  conclusion.at("sentence").get_ref<const std::string&>());
  write_rates_file(options.out, rates, console);
  if (options.html.empty()) return base::ExitCode::ok;
  base::write_file_atomically(options.html, report::generation_page(rates));
  console.message(record::Level::info, "written: " + options.html);
  return base::ExitCode::ok;
}

}  // namespace

Action declare_bench_generate(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  retort bench generate models/europa-5m runs/small/models/pruned --prompts questions.jsonl\n"
      "  retort bench generate WHOLE PRUNED --prompt-tokens 32 512 --batch 1 16 --html speed.html\n"
      "  retort bench generate --shape whole.json --shape pruned.json --batch 1    sizes without weights");
  auto options = std::make_shared<Options>();
  add_options(app, *options);
  return [options] { return measure(*options); };
}

}  // namespace retort::cli
