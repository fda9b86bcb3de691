#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/library.h"
#include "cli/print.h"
#include "cli/recipe_source.h"
#include "cli/text_options.h"

namespace retort::cli {
namespace {

base::ExitCode print_one(pipeline::GenerateRequest& request, bool as_json, Console& console) {
  request.prompt = unescaped(request.prompt);
  const base::Json answer = library().generate(request, console);
  if (answer.at("answer").get_ref<const std::string&>().empty())
    console.message(record::Level::warning,
                    "generate: the model ended the text at once; one that was trained on conversations wants "
                    "its chat form around the prompt.");
  if (as_json)
    print(std::cout, answer, true);
  else
    std::cout << answer.at("text").get_ref<const std::string&>() << '\n';
  return base::ExitCode::ok;
}

}  // namespace

Action declare_generate(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  retort generate models/europa-5m --prompt 'The Debian project is'\n"
      "  retort generate models/europa-5m --prompt 'Es war' --temperature 0.8 --seed 1 --max-new-tokens 100\n"
      "  retort generate models/europa-5m --prompt 'Once' --json     ids of prompt and answer, and the text\n"
      "  retort generate MODEL --prompts questions.jsonl --out answers.jsonl --batch 64");
  struct Options {
    pipeline::GenerateRequest one;
    pipeline::GenerateFileRequest file;
    Verbosity verbosity = Verbosity::normal;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  auto& model = options->one.model;
  app.add_option("MODEL", model.model, "Model directory or GGUF file")->required();
  auto* prompt =
      app.add_option("--prompt", options->one.prompt, "Text to continue; \\n, \\t, \\r and \\\\ as in YAML");
  auto* prompts = app.add_option("--prompts", options->file.prompts,
                                 "JSONL file: {\"prompt\": TEXT} or {\"messages\": [...]} a line");
  auto* out =
      app.add_option("--out", options->file.out, "JSONL file for the answers; the same command goes on");
  prompt->excludes(prompts);
  prompts->needs(out);
  out->needs(prompts);
  auto& text = options->one.text;
  add_sampling_options(app, text);
  app.add_option("--batch", text.texts_at_once, "Texts that are made at once")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--stop", text.stop, "Text that ends an answer; may be given several times");
  app.add_flag("!--no-bos", text.bos, "Without the begin-of-text token before the prompt");
  app.add_flag("--json", options->json, "Print a JSON object");
  add_place(app, model.device, model.dtype);
  add_verbosity(app, options->verbosity);
  return [options, prompt, prompts] {
    base::require<base::UsageError>(prompt->count() + prompts->count() > 0,
                                    "generate: expected --prompt or --prompts, found neither; give one.");
    Console console(options->verbosity);
    for (auto& stop : options->one.text.stop) stop = unescaped(stop);
    if (prompt->count() > 0) return print_one(options->one, options->json, console);
    options->file.model = options->one.model;
    options->file.text = options->one.text;
    print(std::cout, library().generate_file(options->file, console), options->json);
    return base::ExitCode::ok;
  };
}

}  // namespace retort::cli
