#include "retort/pipeline/generated_text.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/base/printable.h"
#include "retort/base/units.h"
#include "retort/comm/lead.h"
#include "retort/model/dtype.h"
#include "retort/pipeline/corpus.h"
#include "retort/pipeline/corpus_rows.h"
#include "retort/pipeline/input_files.h"
#include "retort/pipeline/inspect_model.h"
#include "retort/pipeline/text_model.h"
#include "retort/record/keys.h"

namespace retort::pipeline {
namespace {

namespace keys = record::keys;
using data::SourceOptions;

// Of the tokens that a model makes, questions included, those that are kept: bounds by estimate.
constexpr double kLeastKept = 0.4, kMostKept = 0.95;

bool is_whole(const base::Json& about, std::int64_t budget_tokens) {
  if (!about.is_object()) return false;
  return about.value(keys::kExhausted, false) ||
         (budget_tokens > 0 && about.value(keys::kTokens, std::int64_t{0}) >= budget_tokens);
}

at::ScalarType dtype_on(at::Device device) {
  return model::parse_scoring_dtype("auto", device);
}

StageWork writing_work(const data::GeneratedText& asked, const architecture::Config& config,
                       at::ScalarType dtype) {
  const auto tokens = static_cast<double>(asked.tokens);
  const double flops = tokens * architecture::flops_per_token(config, asked.max_new_tokens / 2);
  return {base::join("writes ", base::human_count(tokens), " tokens"), flops / kMostKept, flops / kLeastKept,
          dtype};
}

// Nothing, or why what is there must not be replaced.
std::string reader_of(const Context& context, const base::Path& text) {
  for (const auto& [stage, files] : files_read(context.directory))
    if (files.contains(base::as_utf8(text.native()))) return stage;
  return {};
}

// Rank 0: takes away what other options or another model wrote.
void remove_others(const Context& context, const SourceOptions& source, const base::Json& settings) {
  const base::Path out = source.paths.front();
  const auto about = CorpusFile::read_about(out);
  std::error_code ignored;
  if (!std::filesystem::exists(out, ignored) && !std::filesystem::exists(CorpusFile::about(out), ignored))
    return;
  if (CorpusFile::fits(about, settings, source.generated.tokens)) return;
  const auto reader = reader_of(context, out);
  base::require<base::UsageError>(
      reader.empty(), "data.", source.name, ": expected the model and the options that stage '", reader,
      "' read the text of, found others; restore them, or choose another --run-dir.");
  context.observer.message(record::Level::info,
                           base::join("text ", source.name, ": is written anew, by other options"));
  base::remove_all(CorpusFile::about(out));
  base::remove_all(out);
}

void say_written(const Context& context, const SourceOptions& source, const CorpusResult& made) {
  const auto& counts = made.counts;
  const auto dropped = describe_dropped(counts);
  context.observer.message(
      record::Level::info,
      base::join("text ", source.name, ": ", counts.kept(), " texts with ", counts.tokens, " tokens",
                 dropped.empty() ? "" : "; dropped: " + dropped,
                 made.seconds > 0 && made.new_tokens > 0
                     ? base::join("; ", std::llround(static_cast<double>(made.new_tokens) / made.seconds),
                                  " tokens/s")
                     : std::string()));
}

bool write_text(const Context& context, const SourceOptions& source) {
  const auto& asked = source.generated;
  const base::Path out = source.paths.front();
  const auto device = context.place.device;
  std::optional<TextModel> writer;
  context.group.agree(
      [&] { writer.emplace(context.model_path(asked.model), device, dtype_on(device), context.observer); });
  base::Json settings;
  bool is_done = false;
  context.lead([&] {
    base::make_directories(out.parent_path());
    base::remove_leftovers(out.parent_path());
    settings = corpus_settings(*writer, asked);
    remove_others(context, source, settings);
    is_done = is_whole(CorpusFile::read_about(out), asked.tokens);
  });
  // One that is done is opened too, which finds damage.
  const bool makes = !context.agreed(is_done);
  if (makes)
    context.observer.message(record::Level::info,
                             base::join("text ", source.name, ": ", asked.model, " writes ",
                                        asked.tokens > 0 ? base::join(asked.tokens, " tokens") : "answers"));
  const auto made = make_corpus({.name = source.name,
                                 .model = *writer,
                                 .asked = asked,
                                 .out = out,
                                 .settings = settings,
                                 .available_bytes = context.place.bytes_of_rank(),
                                 .group = context.group,
                                 .observer = context.observer});
  if (makes) say_written(context, source, made);
  return makes;
}

}  // namespace

void place_generated_texts(recipe::Recipe& recipe, const record::RunFiles& run) {
  for (auto& source : recipe.data) {
    if (!source.generated.is_given()) continue;
    source.paths = {run.text_path(source.name).string()};
    source.field = keys::kText;
  }
}

bool is_there(const SourceOptions& source) {
  return !source.generated.is_given() ||
         is_whole(CorpusFile::read_about(source.paths.front()), source.generated.tokens);
}

std::vector<SourceOptions> those_there(const std::vector<SourceOptions>& sources) {
  std::vector<SourceOptions> there;
  std::ranges::copy_if(sources, std::back_inserter(there), is_there);
  return there;
}

PlannedText planned_text(const PlanContext& context, const SourceOptions& source) {
  const auto& asked = source.generated;
  const auto known = context.models.path(asked.model);
  const auto path = known ? *known : context.models.tokenizer_of_line(asked.model);
  // Of a model with random weights there may be a tokenizer alone.
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored) && !std::filesystem::exists(path / "config.json", ignored))
    return {};
  const auto device = context.place.device;
  TextModel model(path, device, dtype_on(device), context.observer);
  if (!known) model.config = context.models.config_of_line(asked.model);
  const CorpusRows rows(model, asked, "2000-01-01");
  PlannedText planned{.memory = rows.plan(context.place.bytes_of_rank()), .work = {}};
  if (asked.tokens > 0) planned.work = writing_work(asked, model.config, model.dtype);
  return planned;
}

bool write_texts_of(const Context& context, const recipe::Stage& stage) {
  bool any = false;
  for (const auto& source : context.recipe.sources(stage))
    if (source.generated.is_given()) any = write_text(context, source) || any;
  return any;
}

}  // namespace retort::pipeline
