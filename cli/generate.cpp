#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/library.h"
#include "cli/print.h"
#include "cli/recipe_source.h"

namespace retort::cli {

Action declare_generate(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  retort generate models/europa-5m --prompt 'The Debian project is'\n"
      "  retort generate models/europa-5m --prompt 'Es war' --temperature 0.8 --seed 1 --max-new-tokens 100\n"
      "  retort generate models/europa-5m --prompt 'Once' --json     ids of prompt and answer, and the text");
  struct Options {
    pipeline::GenerateRequest request;
    Verbosity verbosity = Verbosity::normal;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  auto& request = options->request;
  app.add_option("MODEL", request.model.model, "Model directory or GGUF file")->required();
  app.add_option("--prompt", request.prompt, "Text to continue; \\n, \\t, \\r and \\\\ as in YAML")
      ->required();
  app.add_option("--max-new-tokens", request.max_new_tokens, "At most so many")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--temperature", request.temperature, "0: greedy")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1000.0));
  app.add_option("--seed", request.seed, "Of sampling")->capture_default_str();
  app.add_flag("!--no-bos", request.bos, "Without the begin-of-text token before the prompt");
  app.add_flag("--json", options->json, "Print {\"ids\": [...], \"text\": ...}");
  add_place(app, request.model.device, request.model.dtype);
  add_verbosity(app, options->verbosity);
  return [options] {
    Console console(options->verbosity);
    options->request.prompt = unescaped(options->request.prompt);
    const base::Json answer = library().generate(options->request, console);
    if (answer.at("answer").get_ref<const std::string&>().empty())
      console.message(
          record::Level::warning,
          "generate: the model ended the text at once; one that was trained on conversations wants its "
          "chat form around the prompt.");
    if (options->json)
      print(std::cout, answer, true);
    else
      std::cout << answer.at("text").get_ref<const std::string&>() << '\n';
    return base::ExitCode::ok;
  };
}

}  // namespace retort::cli
