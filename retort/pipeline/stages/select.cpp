// Stage select: models are distilled for a while with the same text in the same order, and the least held-out
// loss wins.  Where a target says how long a token may take, slower models do not take part.
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <iomanip>

#include "retort/architecture/counts.h"
#include "retort/architecture/hf_config.h"
#include "retort/base/error.h"
#include "retort/base/printable.h"
#include "retort/comm/lead.h"
#include "retort/data/held_out_part.h"
#include "retort/eval/bootstrap.h"
#include "retort/eval/selection.h"
#include "retort/eval/speed_table.h"
#include "retort/model/saved_units.h"
#include "retort/model/weights.h"
#include "retort/pipeline/scoring.h"
#include "retort/pipeline/stages.h"
#include "retort/pipeline/text_checks.h"
#include "retort/pipeline/time_limit.h"
#include "retort/record/keys.h"
#include "retort/record/outputs.h"
#include "retort/record/scratch.h"

namespace retort::pipeline {
namespace {

using recipe::Stage;
namespace keys = record::keys;

struct Contender {
  std::string name;   ///< "pruned, finalist 2"
  std::string model;  ///< as the recipe names it
  base::Path path;
  architecture::Config config;
  std::string student;  ///< the stage that distils it
};

// Finalists of an earlier stage besides its model, as rank 0 finds them.
std::size_t count_finalists(const Context& context, const std::string& model) {
  const auto found = comm::led(context.group, [&] {
    std::string each;
    if (context.recipe.find_stage(model))
      while (std::filesystem::exists(context.finalist_path(model, each.size() + 2))) each += '.';
    return each;
  });
  return found.size();
}

std::vector<Contender> contenders_of(const Context& context, const Stage& stage) {
  std::vector<Contender> contenders;
  const auto add = [&](const std::string& name, const std::string& model, const base::Path& path) {
    const auto student = base::join(stage.name, ".", contenders.size() + 1);
    contenders.push_back({name, model, path, architecture::read_config(path), student});
  };
  for (const auto& model : stage.models) {
    const auto finalists = count_finalists(context, model);
    add(model, model, context.model_path(model));
    for (std::size_t number = 2; number < finalists + 2; ++number)
      add(base::join(model, ", finalist ", number), model, context.finalist_path(model, number));
  }
  return contenders;
}

std::string milliseconds(double seconds) {
  return base::join(std::fixed, std::setprecision(3), 1000 * seconds, " ms");
}

// "pruned (24.100 ms), wide (30.200 ms)"
std::string too_slow(const std::vector<Contender>& contenders, const TimedModels& timed) {
  std::string list;
  for (std::size_t i = 0; i < contenders.size(); ++i)
    if (!timed.meets(i))
      list +=
          base::join(list.empty() ? "" : ", ", contenders[i].name, " (", milliseconds(timed.seconds[i]), ")");
  return list;
}

base::Json latency_json(const std::vector<Contender>& contenders, const TimedModels& timed) {
  auto json = timed.conditions;
  json[keys::kTargetSeconds] = timed.limit_seconds;
  json[keys::kModels] = base::Json::array();
  for (std::size_t i = 0; i < contenders.size(); ++i)
    json[keys::kModels].push_back({{keys::kName, contenders[i].name},
                                   {keys::kSeconds, timed.seconds[i]},
                                   {keys::kMeetsTarget, timed.meets(i)}});
  return json;
}

// Leaves those that meet the target and says which do not.  Returns null without a target.  Throws UsageError
// where none does.  Collective.
base::Json keep_fast_enough(const Context& context, const Stage& stage, std::vector<Contender>& contenders) {
  if (!stage.target.is_given()) return nullptr;
  std::vector<base::Path> paths;
  for (const auto& contender : contenders) paths.push_back(contender.path);
  const auto timed = timed_models(context, stage, paths);
  const auto slow = too_slow(contenders, timed);
  auto json = latency_json(contenders, timed);
  std::vector<Contender> kept;
  for (std::size_t i = 0; i < contenders.size(); ++i)
    if (timed.meets(i)) kept.push_back(std::move(contenders[i]));
  const auto limit = milliseconds(timed.limit_seconds);
  // A stage that has not begun may get another target.
  if (kept.empty()) context.lead([&] { record::remove_scratch(context.directory.checkpoints(stage.name)); });
  base::require<base::UsageError>(!kept.empty(), "target: expected a model that takes at most ", limit,
                                  " a token, found ", slow, "; allow more time, or prune further.");
  if (!slow.empty())
    context.observer.message(record::Level::info,
                             base::join("select: more than the ", limit, " a token of the target take ", slow,
                                        "; they are left out"));
  contenders = std::move(kept);
  return json;
}

const train::TrainOptions& options_of(const Stage& stage) {
  return std::get<train::TrainOptions>(stage.options);
}

// By the contents of both models, so that a student is not taken for that of another.
base::Json started_from(const Context& context, const Stage& stage, const Contender& contender) {
  return {weight_checksums(contender.path), weight_checksums(context.model_path(stage.teacher))};
}

// The stage that distils one of the models.
Stage distillation_of(const Stage& select, const std::string& name, const std::string& from) {
  Stage stage = select;
  stage.kind = recipe::StageKind::distill;
  stage.name = name;
  stage.from = from;
  stage.models.clear();
  stage.target = {};
  return stage;
}

// How the students are measured.
eval::EvaluateOptions measuring(const Stage& stage) {
  return {.windows = eval::Windowing::rolling,
          .context = options_of(stage).packing.sequence_length,
          .tokens = options_of(stage).evaluate_tokens};
}

// Whether a student stands there that began with this identity; what is left of another goes.
bool distilled_before(const Context& context, const std::string& student, const base::Json& identity) {
  if (!context.directory.finished(student)) return false;
  const auto result = context.directory.sound_result(student);
  auto again = result ? record::wrong_with_outputs(context.directory, student, record::Look::contents)
                      : context.directory.result_path(student).string() + " is damaged";
  if (result && result->value(keys::kStartedFrom, base::Json()) != identity)
    record::remove_scratch(context.directory.checkpoints(student));
  else if (again.empty())
    return true;
  else  // its checkpoints belong to this identity, or are refused
    context.observer.message(record::Level::warning,
                             base::join("select: ", again, "; ", student, " is made again"));
  return false;
}

void distil(const Context& context, const Stage& stage, const Contender& contender) {
  const auto& student = contender.student;
  base::Json identity;
  const auto before = comm::led(context.group, [&]() -> std::string {
    identity = started_from(context, stage, contender);
    return distilled_before(context, student, identity) ? "done" : "";
  });
  if (!before.empty()) return;
  context.observer.message(record::Level::info, base::join("select: ", student, " distils ", contender.name));
  const auto distillation = distillation_of(stage, student, contender.path.string());
  auto result = resolved(context, distillation).run(context);
  context.lead([&] {
    result[keys::kStartedFrom] = identity;
    result[keys::kParameters] = architecture::num_parameters(contender.config);
    context.directory.write_result(student, result);
  });
}

// Collective.
std::vector<eval::ModelScores> scores_of(const Context& context, const Stage& stage,
                                         const std::vector<Contender>& contenders) {
  std::vector<eval::ModelScores> scores;
  for (const auto& contender : contenders) {
    context.stop_if_asked(stage.name +
                          ": stopped on request; the students distilled so far are kept, the same command "
                          "again goes on there.");
    const auto student =
        load_for_scoring(context, context.directory.model_directory(contender.student).string());
    scores.push_back(held_out_scores(context, stage, measuring(stage), student, nullptr, nullptr));
    scores.back().name = contender.name;
  }
  return scores;
}

eval::SpeedTable timed(const Context& context, const Stage& stage, const std::vector<Contender>& contenders) {
  std::vector<architecture::Config> configs;
  for (const auto& contender : contenders) configs.push_back(contender.config);
  return eval::SpeedTable::measured(configs, {.context = options_of(stage).packing.sequence_length,
                                              .dtype = context.dtype,
                                              .device = context.place.device});
}

base::Json to_json(const Contender& contender, const eval::Standing& standing, base::Json cost) {
  const auto& interval = standing.interval;
  cost.update({{keys::kName, contender.name},
               {keys::kModel, contender.model},
               {keys::kDirectory, base::as_utf8(contender.path.native())},
               {keys::kStudent, contender.student},
               {keys::kNll, standing.nll},
               {keys::kBehind, standing.behind},
               {keys::kInterval, eval::to_json(interval)},
               {keys::kTied, standing.tied}});
  return cost;
}

void save(const Context& context, const Stage& stage, const Contender& contender) {
  const auto input = describe_input(contender.name, contender.path);
  const auto source = model::open_weights(contender.path);
  // Tensors are written by name, so those of a unit follow each other.
  const auto values = [&source, held = source.layout.units.size(),
                       all = at::Tensor()](std::size_t unit) mutable {
    if (unit == held) return all;
    all = at::zeros({source.layout.units[unit].size}, at::kFloat);
    source.read(unit, 0, all);
    held = unit;
    return all;
  };
  model::save_model({source.config, source.layout, source.lineage, source.file_dtype, values},
                    context.directory.model_directory(stage.name), contender.path,
                    provenance_of(stage, at::kFloat, base::Json::array({input})));
}

// Documents of the source that measures with the fewest, counted up to those that an interval needs.  Throws
// DataError with what to set when a source has fewer than two.
std::int64_t require_documents(const Stage& stage, const std::vector<data::SourceOptions>& sources,
                               const ModelText& text) {
  const auto options = measuring(stage);
  std::size_t fewest = eval::kLeastDocuments;
  for (const auto& source : sources) {
    const auto windows = eval::open_windows(
        source, data::Split::held_out,
        {.windowing = options.windows, .context = options.context, .tokens = options.tokens}, text.encode(),
        text.special);
    for (eval::Window window; windows->documents().size() < fewest && windows->next(window);) continue;
    const auto found = windows->documents().size();
    if (found < 2)
      throw base::DataError(
          base::join("stage '", stage.name, "': expected at least two held-out documents of '", source.name,
                     "' in evaluate_tokens (", options.tokens, "), found ", found, "; ",
                     data::held_out_documents(source, 2) < 2 ? data::held_out_advice(source, 2)
                                                             : "raise evaluate_tokens",
                     "."));
    fewest = std::min(fewest, found);
  }
  return static_cast<std::int64_t>(fewest);
}

void check(const PlanContext& context, const Stage& stage) {
  const auto& model = stage.models.front();
  const auto text =
      read_model_text(context.models.tokenizer_of_line(model), context.models.config_of_line(model));
  context.observer.message(
      record::Level::info,
      base::join("stage '", stage.name, "': ", describe_begin_of_text(options_of(stage).packing.bos, text)));
  require_text_to_train(context, stage, text);
  const auto found = require_documents(stage, context.recipe.sources(stage), text);
  if (found < static_cast<std::int64_t>(eval::kLeastDocuments))
    context.observer.message(
        record::Level::warning,
        base::join("stage '", stage.name, "': a source has only ", found,
                   " held-out documents in evaluate_tokens; with fewer than ", eval::kLeastDocuments,
                   " nothing says which models are tied: raise evaluate_tokens or hold out more."));
}

// The largest among the models, which are distilled one after the other.
std::optional<shard::MemoryPlan> plan_for(const PlanContext& context, const Stage& stage) {
  std::optional<shard::MemoryPlan> largest;
  const auto keep = [&](shard::MemoryPlan plan) {
    if (!largest || plan.total_bytes() > largest->total_bytes()) largest = std::move(plan);
  };
  for (const auto& model : stage.models) {
    const auto distillation = distillation_of(stage, stage.name, model);
    if (auto plan = kTraining.resolve(context, distillation).memory) keep(std::move(*plan));
    if (const auto config = context.models.config(model)) {
      keep(scoring_plan(*config, nullptr, measuring(stage).context, context.place.device,
                        context.place.ranks));
      if (stage.target.is_given()) keep(timing_plan(context, stage, *config));
    }
  }
  if (const auto teacher = context.models.config(stage.teacher); teacher && stage.target.latency > 0)
    keep(timing_plan(context, stage, *teacher));
  return largest;
}

// Saves the best and says how all did.
base::Json choose(const Context& context, const Stage& stage, const std::vector<Contender>& contenders,
                  const std::vector<eval::ModelScores>& scores, const base::Json& latency) {
  const auto standings = eval::standings(scores);
  const auto table = timed(context, stage, contenders);
  const auto chosen = eval::chosen(standings);
  save(context, stage, contenders[chosen]);

  const auto& options = options_of(stage);
  base::Json result = {{keys::kKind, "select"},
                       {keys::kChosen, contenders[chosen].name},
                       {keys::kTokens, options.tokens},
                       {keys::kSpeed, table.to_json()}};
  if (!latency.is_null()) result[keys::kLatency] = latency;
  result[keys::kModels] = base::Json::array();
  for (std::size_t i = 0; i < contenders.size(); ++i)
    result[keys::kModels].push_back(
        to_json(contenders[i], standings[i], eval::to_json(table.cost(contenders[i].config))));
  context.observer.message(
      record::Level::info,
      base::join("select: ", contenders[chosen].name, ", held-out loss ", standings[chosen].nll, " after ",
                 options.tokens, " tokens, of ", contenders.size(), " models"));
  return result;
}

// Collective; what is decided is decided by rank 0.
base::Json run(const Context& context, const Stage& stage) {
  auto contenders = contenders_of(context, stage);
  context.lead([&] {
    for (const auto& contender : contenders)
      (void)require_documents(stage, context.recipe.sources(stage),
                              read_model_text(contender.path, contender.config));
  });
  const auto latency = keep_fast_enough(context, stage, contenders);
  for (const auto& contender : contenders) distil(context, stage, contender);
  const auto scores = scores_of(context, stage, contenders);
  base::Json result;
  context.lead([&] {
    eval::write_documents(context.directory.documents_path(stage.name), scores);
    result = choose(context, stage, contenders, scores, latency);
  });
  return result;
}

ResolvedStage resolve(const PlanContext& context, const Stage& stage) {
  std::vector<SequenceLength> lengths = {
      {"packing.sequence_length", options_of(stage).packing.sequence_length}};
  if (stage.target.is_given()) lengths.push_back({"target.context", stage.target.context});
  return {.lengths = std::move(lengths),
          .memory = plan_for(context, stage),
          .check = [&stage](const PlanContext& known) { check(known, stage); },
          .run = [&stage](const Context& running) { return run(running, stage); }};
}

}  // namespace

const StageFunctions kSelecting = {
    .text_use =
        [](const Stage& stage) {
          return TextUse{
              .learns = true, .reads_held_out = options_of(stage).evaluate_every_steps > 0, .chooses = true};
        },
    .resolve = resolve};

}  // namespace retort::pipeline
