#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/library.h"
#include "cli/print.h"
#include "cli/recipe_source.h"
#include "retort/base/error.h"
#include "retort/io/gguf_mixture.h"

namespace retort::cli {
namespace {

constexpr double kBytesOfMegabyte = 1e6;

// What a person asks first; the rest is in certificate.json.
base::Json summary_of(const base::Json& certificate, const base::Path& directory) {
  base::Json summary = {{"directory", directory.string()},
                        {"model", certificate.at("model")},
                        {"type", certificate.at("type")}};
  if (certificate.contains("like")) summary["like"] = certificate["like"];
  summary["checks"] = certificate.at("checks");
  return summary;
}

void print_certificate(const base::Json& certificate, const base::Path& directory, bool as_json) {
  print(std::cout, as_json ? certificate : summary_of(certificate, directory), as_json);
}

void print_foreseen(const base::Json& found, bool as_json) {
  if (as_json) return print(std::cout, found, true);
  Rows rows{{"stage", base::join("for ", found.at("program").get<std::string>()), "such models"}};
  for (const auto& row : found.at("models"))
    rows.push_back(
        row.at("is_written") == true
            ? std::vector<std::string>{row.at("stage"),
                                       base::join("written as ", row.at("as").get<std::string>()),
                                       row.at("seen")}
            : std::vector<std::string>{row.at("stage"),
                                       base::join("refused: ", row.at("reason").get<std::string>()), "-"});
  std::cout << table(rows, 3);
}

publish::Program program_of(const std::string& name) {
  constexpr auto kWords = words_of(publish::Program{});
  const auto found = std::ranges::find(kWords, name);
  base::require<base::UsageError>(found != kWords.end(), "--for is '", name,
                                  "', expected transformers, vllm, llama.cpp or ollama.");
  return static_cast<publish::Program>(found - kWords.begin());
}

}  // namespace

Action declare_export(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  retort export runs/smollm2/models/student --for llama.cpp --type q8_0 --out student-gguf\n"
      "  retort export runs/smollm2/models/student --for llama.cpp --like smollm2.gguf --out student-gguf\n"
      "  retort export runs/quickstart/models/pruned --for transformers --out pruned-hf\n"
      "The directory gets a README.md and a certificate.json; retort verify DIRECTORY replays it.");
  struct Options {
    pipeline::ExportRequest request;
    std::string program;
    double max_part_megabytes = 0;
    Verbosity verbosity = Verbosity::normal;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  auto& request = options->request;
  app.add_option("MODEL", request.model.model, "Model directory or GGUF file")->required();
  app.add_option("--for", options->program, "transformers, vllm, llama.cpp or ollama")->required();
  app.add_option("--out", request.out, "Directory for what is written; new or empty")->required();
  auto* type = app.add_option(
      "--type", request.options.type,
      base::join("Of a GGUF file: ", io::gguf_mixture_names(), "; default: that of the model's weights"));
  app.add_option("--like", request.options.like,
                 "A GGUF file: each tensor gets the type that it has there, and unchanged blocks are copied")
      ->excludes(type);
  app.add_option("--max-part-mb", options->max_part_megabytes,
                 "Cut a GGUF file into parts of so many megabytes of tensors")
      ->check(CLI::PositiveNumber);
  app.add_option("--device", request.model.device, "Where it is compared: cpu, cuda, ...")
      ->capture_default_str();
  app.add_flag("--json", options->json, "Print the certificate");
  add_verbosity(app, options->verbosity);
  return [options] {
    auto& own = options->request;
    own.options.program = program_of(options->program);
    if (options->max_part_megabytes > 0)
      own.options.max_part_bytes = static_cast<std::int64_t>(options->max_part_megabytes * kBytesOfMegabyte);
    Console console(options->verbosity);
    print_certificate(library().export_model(own, console), own.out, options->json);
    return base::ExitCode::ok;
  };
}

Action declare_verify(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  retort verify student-gguf\n"
      "  retort verify recipe.yaml --for llama.cpp      which models of a recipe will be written, before it "
      "runs\n"
      "Files, token ids and answers are compared with certificate.json, and logits with the model that was "
      "exported "
      "where it is still there.");
  struct Options {
    pipeline::VerifyRequest request;
    std::string program;
    std::vector<std::string> overrides;
    Verbosity verbosity = Verbosity::normal;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  auto& model = options->request.model;
  app.add_option("DIRECTORY", model.model, "What retort export wrote; with --for a recipe")->required();
  auto* program =
      app.add_option("--for", options->program, "Of a recipe: transformers, vllm, llama.cpp or ollama");
  app.add_option("--set", options->overrides, "Of a recipe: KEY=VALUE")->needs(program);
  app.add_option("--device", model.device, "Where it is computed: cpu, cuda, ...")->capture_default_str();
  app.add_flag("--json", options->json, "Print JSON");
  add_verbosity(app, options->verbosity);
  return [options] {
    const std::string& what = options->request.model.model;
    Console console(options->verbosity);
    if (options->program.empty()) {
      print_certificate(library().verify(options->request, console), what, options->json);
      return base::ExitCode::ok;
    }
    const auto recipe = read({.file = what, .overrides = options->overrides, .device = {}, .dtype = {}});
    const auto found = library().foresee(recipe, {.program = program_of(options->program)});
    print_foreseen(found, options->json);
    const bool all =
        std::ranges::all_of(found.at("models"), [](const auto& row) { return row.at("is_written") == true; });
    return all ? base::ExitCode::ok : base::ExitCode::validation;
  };
}

}  // namespace retort::cli
