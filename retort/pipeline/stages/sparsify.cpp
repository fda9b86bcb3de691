// Stage sparsify: 2:4 sparsity of the layers that it harms least.
#include <ATen/ATen.h>

#include <utility>

#include "retort/base/error.h"
#include "retort/base/files.h"
#include "retort/base/units.h"
#include "retort/model/weights.h"
#include "retort/ops/path.h"
#include "retort/pipeline/calibration_text.h"
#include "retort/pipeline/stages.h"
#include "retort/record/scratch.h"
#include "retort/sparsify/options.h"
#include "retort/sparsify/plan.h"
#include "retort/sparsify/sparsify.h"

namespace retort::pipeline {
namespace {

using recipe::Stage;

const sparsify::SparsifyOptions& options_of(const Stage& stage) {
  return std::get<sparsify::SparsifyOptions>(stage.options);
}

CalibratedStage sparsifying(const Place& place, const Stage& stage, const architecture::Config& model) {
  const auto& options = options_of(stage);
  const auto asked = asked_by(options, sparsify::calibration_tokens_of(model, options));
  return calibrated_stage(place, stage, asked, [&](std::int64_t text_tokens) {
    const auto tokens = sparsify::most_tokens(options, text_tokens, place.ranks.all);
    return WeightsToPlace{
        .model = model, .item = sparsify::kSparsifiedWeights, .plan = [&, tokens](bool offloaded) {
          return sparsify::plan_sparsify(model, sizeof(float), tokens, options, /*on_disk=*/true, offloaded,
                                         ops::path_of(place.device));
        }};
  });
}

// Everything that the bits of a finished block depend on.
base::Json identity_of(const Context& context, const Stage& stage, const CalibratedModel& model) {
  return {{"format", 3},
          {"model", model_fingerprint(model.path)},
          {"text", calibrate::text_fingerprint(model.sources)},
          {"stage", recipe::to_json(context.recipe).at("stages").at(stage.name)}};
}

base::Json run(const Context& context, const CalibratedStage& s) {
  auto model = calibrated_model(context, s);
  sparsify::SparsifyPlace place{.scratch = context.directory.checkpoints(s.stage.name),
                                .identity = {},
                                .memory = memory_of_rank(context.place, model.weights.config),
                                .group = &context.group,
                                .writes = model.writes};
  context.lead([&] { place.identity = identity_of(context, s.stage, model); });
  const auto result =
      sparsify::sparsify(std::move(model.weights), calibrate::split_by_document(model.sources),
                         options_of(s.stage), place, context.observer);
  context.lead([&] {
    save_compressed(context, s.stage, model.path, result.weights);
    record::remove_scratch(place.scratch);
  });
  return result.report;
}

// How much text is wanted follows from the model.
ResolvedStage resolve(const PlanContext& context, const Stage& stage) {
  ResolvedStage resolved{.lengths = {{"sequence_length", options_of(stage).sequence_length}}};
  const auto config = context.models.config(stage.from);
  if (!config) return resolved;
  const auto s = sparsifying(context.place, stage, *config);
  resolved.memory = s.weights.memory;
  resolved.work = [s, input = *config] {
    const auto work = sparsify::work_of(input, s.text_tokens, options_of(s.stage));
    return StageWork{describe(work), work.flops, work.flops};
  };
  resolved.check = [s](const PlanContext& known) { (void)calibration_text(known, s.stage, s.asked); };
  resolved.run = [s](const Context& running) { return run(running, s); };
  return resolved;
}

}  // namespace

const StageFunctions kSparsifying = {.text_use = use_of_calibration_text, .resolve = resolve};

}  // namespace retort::pipeline
