// Stage sparsify: 2:4 sparsity of the layers that it harms least.
#include <ATen/ATen.h>

#include <utility>

#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/base/units.h"
#include "retort/model/weights.h"
#include "retort/pipeline/calibration_text.h"
#include "retort/pipeline/stages.h"
#include "retort/sparsify/options.h"
#include "retort/sparsify/plan.h"
#include "retort/sparsify/sparsify.h"

namespace retort::pipeline {
namespace {

using recipe::Stage;

const sparsify::SparsifyOptions& options_of(const Stage& stage) {
  return std::get<sparsify::SparsifyOptions>(stage.options);
}

std::int64_t text_tokens(const Stage& stage, const architecture::Config& input) {
  const auto& options = options_of(stage);
  return calibration_tokens(stage, sparsify::calibration_tokens_of(input, options), options.sequence_length);
}

PlacedWeights placed(const Place& place, const Stage& stage, const architecture::Config& model) {
  const auto& options = options_of(stage);
  const auto tokens = sparsify::most_tokens(options, text_tokens(stage, model), place.ranks.all);
  return placed_weights(place,
                        {.model = model, .item = sparsify::kSparsifiedWeights, .plan = [&](bool offloaded) {
                           return sparsify::plan_sparsify(model, sizeof(float), tokens, options,
                                                          /*on_disk=*/true, offloaded);
                         }});
}

std::optional<shard::MemoryPlan> plan(const PlanContext& context, const Stage& stage) {
  const auto config = context.models.config(stage.from);
  if (!config) return {};
  return placed(context.place, stage, *config).memory;
}

std::optional<StageWork> work(const PlanContext& context, const Stage& stage) {
  const auto config = context.models.config(stage.from);
  if (!config) return {};
  const auto work = sparsify::work_of(*config, text_tokens(stage, *config), options_of(stage));
  return StageWork{describe(work), work.flops};
}

CalibrationAsked asked_by(const Stage& stage, const architecture::Config& input) {
  const auto& options = options_of(stage);
  return {sparsify::calibration_tokens_of(input, options), options.sequence_length, options.seed};
}

// How much text is wanted follows from the model.
void check(const PlanContext& context, const Stage& stage) {
  if (const auto config = context.models.config(stage.from))
    (void)calibration_text(context, stage, asked_by(stage, *config));
}

// Everything that the bits of a finished block depend on.
base::Json identity_of(const Context& context, const Stage& stage,
                       const std::vector<calibrate::SourceText>& sources) {
  return {{"format", 3},
          {"model", model_fingerprint(context.model_path(stage.from))},
          {"text", calibrate::text_fingerprint(sources)},
          {"stage", recipe::to_json(context.recipe).at("stages").at(stage.name)}};
}

base::Json run(const Context& context, const Stage& stage) {
  const auto& options = options_of(stage);
  auto model =
      calibrated_model(context, stage,
                       {.asked = [&](const auto& config) { return asked_by(stage, config); },
                        .placed = [&](const auto& config) { return placed(context.place, stage, config); }});
  sparsify::SparsifyPlace place{.scratch = context.directory.checkpoints(stage.name),
                                .identity = {},
                                .memory = memory_of_rank(context.place, model.weights.config),
                                .group = &context.group,
                                .writes = model.writes};
  context.group.agree([&] {
    if (context.leads()) place.identity = identity_of(context, stage, model.sources);
  });
  const auto result =
      sparsify::sparsify(std::move(model.weights), calibrate::split_by_document(model.sources), options,
                         place, context.observer);
  context.group.agree([&] {
    if (!context.leads()) return;
    save_compressed(context, stage, model.path, result.weights);
    base::remove_all(place.scratch);
  });
  return result.report;
}

}  // namespace

const StageFunctions kSparsifying = {.text_use = use_of_calibration_text,
                                     .sequence_length = calibration_length<sparsify::SparsifyOptions>,
                                     .check = check,
                                     .plan = plan,
                                     .work = work,
                                     .run = run};

}  // namespace retort::pipeline
