#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/library.h"
#include "cli/print.h"
#include "cli/recipe_source.h"
#include "retort/base/error.h"
#include "retort/report/report.h"

namespace retort::cli {

Action declare_eval(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  retort eval models/europa-5m --text book.txt\n"
      "  retort eval runs/quickstart/models/student --teacher models/europa-5m --text '*.txt.gz' --json\n"
      "  retort eval models/europa-5m --text data.jsonl --field body --per-token nll.jsonl\n"
      "All of the text is used, in windows of --context tokens.");
  struct Options {
    pipeline::EvalRequest request;
    Verbosity verbosity = Verbosity::normal;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  auto& request = options->request;
  app.add_option("MODEL", request.model.model, "Model directory or GGUF file")->required();
  app.add_option("--text", request.texts, "Text or .jsonl files, plain, .gz or .zst; globs")->required();
  app.add_option("--teacher", request.teacher, "Model directory: adds KL, top-1 agreement and recovery");
  app.add_option("--context", request.context,
                 "Tokens of a window; default: what the models were made for, at most 4096")
      ->check(CLI::Range(2, 1 << 20));
  app.add_flag("--rolling", request.rolling,
               "Documents on their own, instead of windows over the joined text");
  app.add_flag("!--no-bos", request.bos, "Without the begin-of-text token");
  app.add_option("--field", request.field, "JSONL: the key that holds the text")->capture_default_str();
  app.add_option("--separator", request.separator,
                 "Plain text: cut documents here (\\n and \\t are understood)");
  app.add_option("--per-token", request.per_token,
                 "Write a line per window: {\"ids\": [...], \"nll\": [null, ...]}");
  app.add_option("--per-document", request.per_document,
                 "Write a line per document: sums of NLL and, with a teacher, of its NLL and the KL");
  app.add_flag("--json", options->json, "Print JSON");
  add_place(app, request.model.device, request.model.dtype);
  add_verbosity(app, options->verbosity);
  return [options] {
    base::require<base::UsageError>(options->request.bos || !options->request.rolling,
                                    "eval: --rolling begins every document with the begin-of-text token, "
                                    "found --no-bos too; leave one out.");
    options->request.separator = unescaped(options->request.separator);
    Console console(options->verbosity);
    const base::Json result = library().evaluate(options->request, console);
    if (options->json)
      print(std::cout, result, true);
    else
      std::cout << report::scores_table(result);
    return base::ExitCode::ok;
  };
}

}  // namespace retort::cli
