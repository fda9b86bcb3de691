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

namespace {

struct Options {
  pipeline::EvalRequest text;
  pipeline::TasksRequest tasks;
  Verbosity verbosity = Verbosity::normal;
  bool json = false;
};

void declare_text(CLI::App& app, pipeline::EvalRequest& request) {
  app.add_option("--text", request.texts, "Text or .jsonl files, plain, .gz or .zst, or .parquet; globs");
  app.add_option("--context", request.context,
                 "Tokens of a window; default: what the models were made for, at most 4096")
      ->check(CLI::Range(2, 1 << 20));
  app.add_flag("--rolling", request.rolling,
               "Documents on their own, instead of windows over the joined text");
  app.add_flag("!--no-bos", request.bos, "Without the begin-of-text token");
  app.add_option("--field", request.field, "The key (JSONL) or column (Parquet) that holds the text")
      ->capture_default_str();
  app.add_flag("--chat", request.chat,
               "The files have conversations: the model's chat template writes them, answers are measured");
  app.add_option("--separator", request.separator,
                 "Plain text: cut documents here (\\n and \\t are understood)");
  app.add_option("--per-token", request.per_token,
                 "Write a line per window: {\"ids\": [...], \"nll\": [null, ...]}");
  app.add_option("--per-document", request.per_document,
                 "Write a line per document: sums of NLL and, with a teacher, of its NLL and the KL");
}

void declare_tasks(CLI::App& app, pipeline::TasksRequest& request) {
  constexpr const char* kGroup = "Tasks";
  auto& tasks = request.tasks;
  app.add_option("--tasks", tasks.files, "YAML files of tasks, in the keys of lm-evaluation-harness")
      ->group(kGroup);
  app.add_option("--data", tasks.data, "Directory with the data sets of the Hugging Face Hub that tasks name")
      ->group(kGroup);
  app.add_option("--num-fewshot", tasks.num_fewshot,
                 "Examples before each question; default: as the task's file says")
      ->check(CLI::NonNegativeNumber)
      ->group(kGroup);
  app.add_option("--limit", tasks.limit, "Documents of each task, the first ones; default: all")
      ->check(CLI::PositiveNumber)
      ->group(kGroup);
  app.add_flag("--apply-chat-template", tasks.chat, "Write questions as the model's chat template has them")
      ->group(kGroup);
  app.add_flag("--fewshot-as-multiturn,!--no-fewshot-as-multiturn", tasks.multiturn,
               "In a chat: examples are turns of their own (default), or stand in the question's")
      ->group(kGroup);
  app.add_option("--system", tasks.system, "Stands before a task's description")->group(kGroup);
  app.add_option("--log-samples", request.samples,
                 "Directory for samples_TASK.jsonl: a line per document with requests and answers")
      ->group(kGroup);
}

void evaluate_text(Options& options, Console& console) {
  auto& request = options.text;
  base::require<base::UsageError>(request.bos || !request.rolling,
                                  "eval: --rolling begins every document with the begin-of-text token, "
                                  "found --no-bos too; leave one out.");
  base::require<base::UsageError>(!request.chat || (request.separator.empty() && !request.rolling),
                                  "eval: --chat has a window of its own for each conversation, found "
                                  "--separator or --rolling too; leave them out.");
  request.separator = unescaped(request.separator);
  const base::Json result = library().evaluate(request, console);
  if (options.json)
    print(std::cout, result, true);
  else
    std::cout << report::scores_table(result);
}

void evaluate_tasks(const Options& options, Console& console) {
  auto request = options.tasks;
  request.model = options.text.model;
  request.teacher = options.text.teacher;
  const base::Json result = library().evaluate_tasks(request, console);
  if (options.json)
    print(std::cout, result, true);
  else
    std::cout << report::tasks_table(report::as_evaluation(result));
}

}  // namespace

Action declare_eval(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  retort eval models/europa-5m --text book.txt\n"
      "  retort eval runs/quickstart/models/student --teacher models/europa-5m --text '*.txt.gz' --json\n"
      "  retort eval models/europa-5m --text data.jsonl --field body --per-token nll.jsonl\n"
      "  retort eval student --teacher model --tasks tasks/arc_easy.yaml tasks/piqa.yaml --data datasets\n"
      "All of the text is used, in windows of --context tokens.");
  auto options = std::make_shared<Options>();
  auto& model = options->text.model;
  app.add_option("MODEL", model.model, "Model directory or GGUF file")->required();
  app.add_option("--teacher", options->text.teacher,
                 "Model directory: adds KL, top-1 agreement and recovery, or recovery on tasks");
  declare_text(app, options->text);
  declare_tasks(app, options->tasks);
  app.add_flag("--json", options->json, "Print JSON");
  add_place(app, model.device, model.dtype);
  add_verbosity(app, options->verbosity);
  return [options] {
    const bool text = !options->text.texts.empty(), tasks = !options->tasks.tasks.files.empty();
    base::require<base::UsageError>(text != tasks, "eval: expected --text or --tasks, found ",
                                    text ? "both; evaluate text and tasks by two commands." : "neither.");
    Console console(options->verbosity);
    if (text)
      evaluate_text(*options, console);
    else
      evaluate_tasks(*options, console);
    return base::ExitCode::ok;
  };
}

}  // namespace retort::cli
