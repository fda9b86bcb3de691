#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/interrupt.h"
#include "cli/library.h"
#include "cli/print.h"
#include "cli/recipe_source.h"
#include "cli/text_options.h"
#include "retort/base/units.h"

namespace retort::cli {
namespace {

struct GenerateOptions {
  pipeline::GenerateRequest one;
  pipeline::GenerateFileRequest file;
  pipeline::CorpusRequest corpus;
  std::string tokens;
  Verbosity verbosity = Verbosity::normal;
  bool json = false;
};

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

// GenerateOptions that only a corpus has.
std::vector<CLI::Option*> add_corpus_options(CLI::App& app, GenerateOptions& options) {
  auto& text = options.corpus.text;
  const auto group = [](CLI::Option* option) { return option->group("Corpus"); };
  return {
      group(app.add_option("--tokens", options.tokens, "Of the texts that are kept, such as 1M")),
      group(app.add_flag("--chat", text.chat, "Conversations in the form of the model's chat template")),
      group(app.add_option("--questions", text.questions,
                           "self: the model asks; or a file, a question a line: text, {\"prompt\": TEXT} or "
                           "{\"messages\": [...]}")
                ->capture_default_str()),
      group(app.add_option("--question-temperature", text.question_temperature, "Of questions that it asks")
                ->check(CLI::Range(0.0, 1000.0))
                ->capture_default_str()),
      group(
          app.add_option("--starts", text.starts,
                         "File with beginnings of documents, one a line: text or {\"text\": TEXT}; default: "
                         "from the begin-of-text token alone")),
      group(app.add_option("--start-tokens", text.start_tokens, "Of each beginning at most")
                ->check(CLI::Range(1, 1 << 20))
                ->capture_default_str()),
  };
}

// What a corpus takes where nothing is given differs from what answers take.
void take_given(const CLI::App& app, GenerateOptions& options) {
  auto& text = options.corpus.text;
  const auto& asked = options.one.text;
  const auto& sampling = asked.sampling;
  const auto tokens = base::parse_count(options.tokens.empty() ? "0" : options.tokens);
  base::require<base::UsageError>(tokens.has_value() && *tokens >= 0, "--tokens: expected a number such as ",
                                  "100k, found '", options.tokens, "'.");
  text.model = options.one.model.model;
  text.tokens = *tokens;
  if (app.count("--max-new-tokens") > 0) text.max_new_tokens = asked.max_new_tokens;
  if (app.count("--batch") > 0) text.batch = asked.texts_at_once;
  text.temperature = sampling.temperature.value_or(text.chat ? data::GeneratedText::kOfAnswers
                                                             : data::GeneratedText::kOfDocuments);
  text.top_p = sampling.top_p.value_or(text.top_p);
  text.top_k = sampling.top_k.value_or(text.top_k);
  text.min_p = sampling.min_p.value_or(text.min_p);
  text.seed = sampling.seed;
  for (const char* other : {"--repetition-penalty", "--stop", "--no-bos"})
    base::require<base::UsageError>(app.count(other) == 0, "generate: ", other,
                                    " has no meaning for a corpus; leave it out.");
}

base::ExitCode write_corpus(const CLI::App& app, GenerateOptions& options, Console& console) {
  take_given(app, options);
  options.corpus.model = options.one.model;
  catch_interrupts();
  print(std::cout, library().generate_corpus(options.corpus, console), options.json);
  return base::ExitCode::ok;
}

}  // namespace

Action declare_generate(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  retort generate models/europa-5m --prompt 'The Debian project is'\n"
      "  retort generate models/europa-5m --prompt 'Es war' --temperature 0.8 --seed 1 --max-new-tokens 100\n"
      "  retort generate models/europa-5m --prompt 'Once' --json     ids of prompt and answer, and the text\n"
      "  retort generate MODEL --prompts questions.jsonl --out answers.jsonl --batch 64\n"
      "  retort generate MODEL --corpus chats.jsonl --tokens 1M --chat      the model asks and answers\n"
      "  retort generate models/europa-5m --corpus texts.jsonl --tokens 100k");
  auto options = std::make_shared<GenerateOptions>();
  auto& model = options->one.model;
  app.add_option("MODEL", model.model, "Model directory or GGUF file")->required();
  auto* prompt =
      app.add_option("--prompt", options->one.prompt, "Text to continue; \\n, \\t, \\r and \\\\ as in YAML");
  auto* prompts = app.add_option("--prompts", options->file.prompts,
                                 "JSONL file: {\"prompt\": TEXT} or {\"messages\": [...]} a line");
  auto* out =
      app.add_option("--out", options->file.out, "JSONL file for the answers; the same command goes on");
  auto* corpus = app.add_option("--corpus", options->corpus.out,
                                "JSONL file for texts to learn from; the same command goes on");
  prompt->excludes(prompts);
  prompts->needs(out);
  out->needs(prompts);
  corpus->excludes(prompt)->excludes(prompts);
  auto& text = options->one.text;
  add_sampling_options(app, text);
  app.add_option("--batch", text.texts_at_once, "Texts that are made at once")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--stop", text.stop, "Text that ends an answer; may be given several times");
  app.add_flag("!--no-bos", text.bos, "Without the begin-of-text token before the prompt");
  for (auto* option : add_corpus_options(app, *options)) option->needs(corpus);
  app.add_flag("--json", options->json, "Print a JSON object");
  add_place(app, model.device, model.dtype);
  add_verbosity(app, options->verbosity);
  return [options, prompt, prompts, corpus, &app] {
    base::require<base::UsageError>(
        prompt->count() + prompts->count() + corpus->count() > 0,
        "generate: expected --prompt, --prompts or --corpus, found none; give one.");
    Console console(options->verbosity);
    if (corpus->count() > 0) return write_corpus(app, *options, console);
    for (auto& stop : options->one.text.stop) stop = unescaped(stop);
    if (prompt->count() > 0) return print_one(options->one, options->json, console);
    options->file.model = options->one.model;
    options->file.text = options->one.text;
    print(std::cout, library().generate_file(options->file, console), options->json);
    return base::ExitCode::ok;
  };
}

}  // namespace retort::cli
