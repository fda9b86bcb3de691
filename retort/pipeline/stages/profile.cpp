// Stage profile: what the model's activations are on calibration text.
#include <ATen/ATen.h>

#include <algorithm>

#include "retort/calibrate/options.h"
#include "retort/calibrate/profile.h"
#include "retort/ops/path.h"
#include "retort/pipeline/calibration_text.h"
#include "retort/pipeline/stages.h"

namespace retort::pipeline {
namespace {

using recipe::Stage;

const calibrate::ProfileOptions& options_of(const Stage& stage) {
  return std::get<calibrate::ProfileOptions>(stage.options);
}

base::Json identity_of(const base::Path& model, const std::vector<calibrate::SourceText>& sources,
                       const calibrate::ProfileOptions& options) {
  return {{"model", model_fingerprint(model)},
          {"text", calibrate::text_fingerprint(sources)},
          {"sequence_length", options.sequence_length},
          {"seed", options.seed}};
}

CalibrationAsked asked(const Stage& stage) {
  return asked_by(options_of(stage), options_of(stage).calibration_tokens);
}

CalibratedStage profiling(const Place& place, const Stage& stage, const architecture::Config& model) {
  const auto panel = std::max(calibrate::kPanelTokens, options_of(stage).sequence_length);
  return calibrated_stage(place, stage, asked(stage), [&](std::int64_t tokens) {
    return WeightsToPlace{.model = model,
                          .item = calibrate::kProfiledWeights,
                          .plan = [&model, tokens, panel, &place](bool offloaded) {
                            return calibrate::plan_profile(model, sizeof(float), tokens, panel, offloaded,
                                                           ops::path_of(place.device));
                          }};
  });
}

// A machine holds the weights once, and its ranks share what is left.
base::Json run(const Context& context, const CalibratedStage& profiled) {
  const auto& stage = profiled.stage;
  const auto& options = options_of(stage);
  const auto model = calibrated_model(context, profiled);
  calibrate::ProfilePlace place{.directory = context.directory.stage_directory(stage.name),
                                .scratch = context.directory.checkpoints(stage.name),
                                .identity = {},
                                .memory = memory_of_rank(context.place, model.weights.config),
                                .group = &context.group};
  context.lead([&] { place.identity = identity_of(model.path, model.sources, options); });
  return to_json(calibrate::profile(model.weights, model.sources, place, context.observer));
}

ResolvedStage resolve(const PlanContext& context, const Stage& stage) {
  ResolvedStage resolved{.lengths = {asked(stage).length()}, .check = [&stage](const PlanContext& known) {
                           (void)calibration_text(known, stage, asked(stage));
                         }};
  const auto config = context.models.config(stage.from);
  if (!config) return resolved;
  const auto profiled = profiling(context.place, stage, *config);
  resolved.memory = profiled.weights.memory;
  resolved.work = [profiled, model = *config] {
    return profiling_work(options_of(profiled.stage), model, profiled.text_tokens);
  };
  resolved.run = [profiled](const Context& running) { return run(running, profiled); };
  return resolved;
}

}  // namespace

const StageFunctions kProfiling = {.text_use = use_of_calibration_text, .resolve = resolve};

}  // namespace retort::pipeline
