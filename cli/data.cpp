// `retort data inspect`: what a source of text holds, before anything learns from it.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/print.h"
#include "cli/standard_streams.h"
#include "retort/architecture/hf_config.h"
#include "retort/base/files.h"
#include "retort/base/output_file.h"
#include "retort/base/units.h"
#include "retort/data/chat_encoder.h"
#include "retort/data/file_form.h"
#include "retort/data/inspection.h"
#include "retort/recipe/recipe.h"
#include "retort/report/text_page.h"
#include "retort/text/tokenizer.h"

namespace retort::cli {
namespace {

using base::Json;

struct DataOptions {
  std::vector<std::string> inputs, sources;
  std::string model, field, separator, html;
  std::int64_t sequence_length = 0;
  data::InspectionOptions inspection;
  Verbosity verbosity = Verbosity::normal;
  bool chat = false, json = false;
};

// A source, with what a stage that learns from it makes of it.
struct Inspected {
  data::SourceOptions source;
  data::PackingOptions packing;
  std::string model;  ///< whose tokenizer reads it; empty: none
};

bool is_recipe(const std::string& input) {
  const auto extension = base::Path(input).extension();
  return extension == ".yaml" || extension == ".yml";
}

// The directory that a stage's model was made of; empty where it is none that is there.
std::string model_of_line(const recipe::Recipe& recipe, const recipe::Stage* stage) {
  while (stage) {
    const auto origins = stage->origins();
    const auto name = !origins.empty()         ? origins.front()
                      : !stage->models.empty() ? stage->models.front()
                                               : stage->tokenizer;
    stage = recipe.find_stage(name);
    std::error_code ignored;
    if (!stage) return std::filesystem::exists(name, ignored) ? name : std::string();
  }
  return {};
}

Inspected of_recipe(const recipe::Recipe& recipe, const data::SourceOptions& source) {
  Inspected inspected{.source = source, .packing = {}, .model = {}};
  const recipe::Stage* reads = nullptr;
  for (const auto& stage : recipe.stages) {
    if (std::ranges::find(stage.data, source.name) == stage.data.end()) continue;
    const auto* training = std::get_if<train::TrainOptions>(&stage.options);
    if (!reads || (training && !std::get_if<train::TrainOptions>(&reads->options))) reads = &stage;
  }
  if (!reads) return inspected;
  if (const auto* training = std::get_if<train::TrainOptions>(&reads->options))
    inspected.packing = training->packing;
  inspected.model = model_of_line(recipe, reads);
  return inspected;
}

std::vector<Inspected> from_recipe(const DataOptions& options) {
  const auto recipe = recipe::read_recipe(options.inputs.front());
  std::vector<Inspected> all;
  for (const auto& name : options.sources) {
    const bool known = std::ranges::any_of(recipe.data, [&](const auto& one) { return one.name == name; });
    base::require<base::UsageError>(known, "data inspect: --source ", name, ": ", options.inputs.front(),
                                    " has no such source; name one under its data.");
  }
  for (const auto& source : recipe.data) {
    const bool named = std::ranges::find(options.sources, source.name) != options.sources.end();
    if (!named && !options.sources.empty()) continue;
    base::require<base::UsageError>(
        !source.generated.is_given(), "data inspect: source '", source.name,
        "': expected text that is there, found one that a model writes in a run; inspect text/", source.name,
        "/text.jsonl of the run directory", source.chat ? " with --chat and --model." : ".");
    all.push_back(of_recipe(recipe, source));
  }
  return all;
}

Inspected from_files(const DataOptions& options) {
  data::SourceOptions source;
  source.name = "text";
  source.paths = options.inputs;
  source.separator = unescaped(options.separator);
  if (!options.field.empty()) source.field = options.field;
  source.chat = options.chat;
  return {.source = source, .packing = {}, .model = {}};
}

std::vector<Inspected> inspected_of(const DataOptions& options) {
  const bool recipe = options.inputs.size() == 1 && is_recipe(options.inputs.front());
  base::require<base::UsageError>(
      recipe || options.sources.empty(),
      "data inspect: --source names a source of a recipe, found files; leave it out.");
  base::require<base::UsageError>(
      !recipe || (options.field.empty() && options.separator.empty() && !options.chat),
      "data inspect: a recipe says how its text is read, found --field, --separator or --chat too; leave "
      "them out.");
  auto all = recipe ? from_recipe(options) : std::vector{from_files(options)};
  for (auto& one : all) {
    if (!options.model.empty()) one.model = options.model;
    if (options.sequence_length > 0) one.packing.sequence_length = options.sequence_length;
  }
  return all;
}

// A tokenizer alone has no begin-of-text token that a model was trained with.
data::SpecialTokens special_of(const std::string& model) {
  std::error_code ignored;
  const bool has_config = std::filesystem::exists(base::Path(model) / "config.json", ignored) ||
                          base::Path(model).extension() == ".gguf";
  if (!has_config) return {};
  const auto config = architecture::read_config(model);
  data::SpecialTokens special;
  if (!config.bos_token_ids.empty()) special.bos = config.bos_token_ids.front();
  if (!config.eos_token_ids.empty()) special.eos = config.eos_token_ids.front();
  return special;
}

Json inspect(const Inspected& one, data::InspectionOptions options) {
  data::check_files(one.source);
  data::Encode encode;
  data::SpecialTokens special;
  options.packing = one.packing;
  if (!one.model.empty()) {
    const auto tokenizer = text::Tokenizer::from_file(one.model);
    encode = data::Encode([tokenizer](std::string_view text) { return tokenizer.encode(text, false); });
    encode.chat = data::ChatEncoder(one.model, tokenizer);
    special = special_of(one.model);
  }
  auto json = data::inspect(one.source, encode, special, options);
  json["model"] = one.model.empty() ? Json() : Json(one.model);
  return json;
}

std::string as_percent(double share) {
  return fixed(share * 100, 1) + " %";
}

std::string grouped(const Json& value) {
  auto digits = std::to_string(value.get<std::int64_t>());
  for (auto at = std::ssize(digits) - 3; at > 0; at -= 3) digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

void print_tokens(const Json& source, const std::function<void(const char*, const std::string&)>& line) {
  line("tokens",
       grouped(source["tokens"]) + ", " + fixed(source["bytes_per_token"].get<double>(), 2) + " bytes each");
  if (source["chat"] == true)
    line("learned", as_percent(1 - source["without_target"].get<double>()) + " of the tokens, " +
                        as_percent(source["without_target"].get<double>()) + " are masked");
  auto sequences = grouped(source["sequences"]) + " of " + grouped(source["sequence_length"]) + " tokens";
  if (source["whole"] == true) sequences += ", " + as_percent(source["padding"].get<double>()) + " padding";
  line("sequences", sequences);
  if (source["too_long"] > 0)
    line("longer", grouped(source["too_long"]) + " documents" +
                       (source["whole"] == true ? ", which are left out" : ", which are cut"));
  if (source["unanswered"] > 0) line("no answer", grouped(source["unanswered"]) + " conversations, left out");
  if (source["refused"] > 0)
    line("refused",
         grouped(source["refused"]) + "; the first: " + source["first_refused"].get<std::string>());
}

void print_numbers(const Json& source) {
  std::cout << source["name"].get<std::string>() << ": " << grouped(source["files"])
            << (source["files"] == 1 ? " file of " : " files of ")
            << (source["chat"] == true ? "conversations" : "text") << "\n";
  const auto line = [](const char* name, const std::string& value) {
    std::cout << "  " << name << std::string(12 - std::string_view(name).size(), ' ') << value << "\n";
  };
  line("documents",
       grouped(source["documents"]) + (source["all"] == true ? "" : ", the first ones") +
           (source["held_out"].is_null() ? "" : ", " + grouped(source["held_out"]) + " held out"));
  line("copies", grouped(source["duplicates"]) + " documents are exact copies of earlier ones");
  line("bytes", base::human_bytes(source["bytes"].get<std::uint64_t>()));
  if (source["bad_lines"] > 0)
    line("bad lines",
         grouped(source["bad_lines"]) + "; the first: " + source["first_bad"].get<std::string>());
  if (const Json& lengths = source["lengths"]; lengths.is_object())
    line("lengths", (source.contains("tokens") ? "in tokens: " : "in bytes: ") + grouped(lengths["least"]) +
                        " to " + grouped(lengths["most"]) + ", median " + grouped(lengths["median"]) +
                        ", 10 % below " + grouped(lengths["p10"]) + ", 90 % below " +
                        grouped(lengths["p90"]) + ", 99 % below " + grouped(lengths["p99"]));
  if (source.contains("tokens"))
    print_tokens(source, line);
  else
    line("tokens", "unknown; --model names the model whose tokenizer counts them");
}

void show_samples(const Json& source) {
  for (const Json& sample : source.value("samples", Json::array())) {
    std::cout << "  " << sample["place"].get<std::string>() << "\n";
    const auto text = sample["text"].get<std::string>();
    std::size_t at = 0;
    std::cout << "| ";
    for (const Json& answer : sample["answers"]) {
      const auto begin = answer[0].get<std::size_t>(), end = answer[1].get<std::size_t>();
      std::cout << text.substr(at, begin - at);
      write_marked(text.substr(begin, end - begin));
      at = end;
    }
    std::cout << text.substr(at) << (sample["cut"] == true ? " ..." : "") << "\n";
  }
}

base::ExitCode inspect_all(const DataOptions& options) {
  Console console(options.verbosity);
  if (!options.html.empty())
    base::require_replaceable(options.html, "a page of retort data inspect", report::is_text_page);
  Json result = {{"sources", Json::array()}};
  for (const auto& one : inspected_of(options)) {
    console.message(record::Level::debug, "reading " + one.source.name);
    result["sources"].push_back(inspect(one, options.inspection));
    if (options.json) continue;
    print_numbers(result["sources"].back());
    show_samples(result["sources"].back());
  }
  if (options.json) print(std::cout, result, true);
  if (options.html.empty()) return base::ExitCode::ok;
  base::write_file_atomically(options.html, report::text_page(result));
  console.message(record::Level::info, "written: " + options.html);
  return base::ExitCode::ok;
}

Action declare_inspect(CLI::App& app) {
  app.footer(
      "Examples:\n"
      "  retort data inspect my.yaml\n"
      "  retort data inspect chats.jsonl --chat --model models/instruct --sequence-length 1024\n"
      "  retort data inspect 'corpus/*.txt.gz' --separator '\\n\\n\\n' --model models/europa-5m --html "
      "text.html\n"
      "In samples the tokens that are learned of a conversation are coloured, or stand in [[ ]].");
  auto options = std::make_shared<DataOptions>();
  app.add_option("INPUT", options->inputs,
                 "A recipe, or files: text or .jsonl, plain, .gz or .zst, or .parquet; globs")
      ->required();
  app.add_option("--model", options->model,
                 "Whose tokenizer and chat template read the text; default: as the recipe's stages");
  app.add_option("--source", options->sources, "Only this source of the recipe; repeatable")
      ->allow_extra_args(false);
  app.add_option("--sequence-length", options->sequence_length,
                 "Tokens of a sequence; default: as the recipe's stages, or 512")
      ->check(CLI::Range(2, 1 << 20));
  app.add_flag("--chat", options->chat, "The files have conversations");
  app.add_option("--field", options->field, "The key (JSONL) or column (Parquet) that holds the text");
  app.add_option("--separator", options->separator,
                 "Plain text: cut documents here (\\n and \\t are understood)");
  app.add_option("--documents", options->inspection.documents, "Only the first so many of each source")
      ->check(CLI::PositiveNumber);
  app.add_option("--samples", options->inspection.samples, "Documents that are shown of each source")
      ->capture_default_str()
      ->check(CLI::Range(0, 100));
  app.add_option("--html", options->html, "File for a page with the same");
  app.add_flag("--json", options->json, "Print JSON");
  add_verbosity(app, options->verbosity);
  return [options] { return inspect_all(*options); };
}

}  // namespace

Action declare_data(CLI::App& app) {
  app.require_subcommand(1);
  return declare_inspect(
      *app.add_subcommand("inspect", "Lengths, copies, bad lines, and samples with answers"));
}

}  // namespace retort::cli
