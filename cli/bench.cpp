#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/bench_generate.h"
#include "cli/bench_tables.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/library.h"
#include "cli/print.h"
#include "cli/rates_file.h"
#include "cli/recipe_source.h"

namespace retort::cli {
namespace {

struct BenchOptions {
  pipeline::BenchRequest request;
  std::string out;
  Verbosity verbosity = Verbosity::normal;
  bool json = false;
};

void add_options(CLI::App& app, BenchOptions& options) {
  auto& request = options.request;
  app.add_option("MODEL", request.model.model,
                 "Model directory or GGUF file, for its shapes; without one, a usual shape");
  app.add_option("--tokens", request.tokens,
                 "That go through an operation together; default: as the time allows, at most 2048")
      ->check(CLI::Range(16, 1 << 20));
  app.add_option("--seconds", request.seconds,
                 "That the measurement may take, about; every shape is measured a few times in any case")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 86400.0));
  app.add_option("--out", options.out, "File for the rates as JSON");
  app.add_flag("--json", options.json, "Print JSON");
  add_place(app, request.model.device, request.model.dtype);
  add_verbosity(app, options.verbosity);
}

using Measure = base::Json (*pipeline::Library::*)(const pipeline::BenchRequest&, record::Observer&);

base::ExitCode measure(const BenchOptions& options, Measure rates_of,
                       std::string (*tables_of)(const base::Json&)) {
  Console console(options.verbosity);
  require_rates_file(options.out);
  const base::Json rates = (library().*rates_of)(options.request, console);
  if (options.json)
    print(std::cout, rates, true);
  else
    std::cout << tables_of(rates);
  write_rates_file(options.out, rates, console);
  return base::ExitCode::ok;
}

}  // namespace

Action declare_bench(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  retort bench gemm models/europa-5m            the products of a model\n"
      "  retort bench gemm SmolLM2-135M-Instruct.Q4_1.gguf --dtype fp32 --out rates.json\n"
      "  retort bench kernels models/europa-5m         the operations between the products\n"
      "  retort bench generate WHOLE PRUNED            whether a smaller model is a faster one");
  app.require_subcommand(1);
  CLI::App* gemm = app.add_subcommand("gemm", "Rates of a model's products");
  CLI::App* kernels = app.add_subcommand("kernels", "Rates of norms, attention, losses and the optimizer");
  auto of_gemm = std::make_shared<BenchOptions>(), of_kernels = std::make_shared<BenchOptions>();
  add_options(*gemm, *of_gemm);
  add_options(*kernels, *of_kernels);
  CLI::App* generate = app.add_subcommand("generate", "Times of texts that models make, side by side");
  const Action of_generate = declare_bench_generate(*generate);
  return [=] {
    if (generate->parsed()) return of_generate();
    return gemm->parsed() ? measure(*of_gemm, &pipeline::Library::bench_gemm, gemm_tables)
                          : measure(*of_kernels, &pipeline::Library::bench_kernels, kernel_tables);
  };
}

}  // namespace retort::cli
