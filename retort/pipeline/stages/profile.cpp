// Stage profile: what the model's activations are on calibration text.
#include <ATen/ATen.h>

#include <algorithm>

#include "retort/calibrate/options.h"
#include "retort/calibrate/profile.h"
#include "retort/pipeline/calibration_text.h"
#include "retort/pipeline/stages.h"

namespace retort::pipeline {
namespace {

using recipe::Stage;

const calibrate::ProfileOptions& options_of(const Stage& stage) {
  return std::get<calibrate::ProfileOptions>(stage.options);
}

CalibrationAsked asked_by(const calibrate::ProfileOptions& options) {
  return {options.calibration_tokens, options.sequence_length, options.seed};
}

base::Json identity_of(const base::Path& model, const std::vector<calibrate::SourceText>& sources,
                       const calibrate::ProfileOptions& options) {
  return {{"model", model_fingerprint(model)},
          {"text", calibrate::text_fingerprint(sources)},
          {"sequence_length", options.sequence_length},
          {"seed", options.seed}};
}

PlacedWeights placed(const Place& place, const Stage& stage, const architecture::Config& model) {
  const auto asked = asked_by(options_of(stage));
  const auto tokens = calibration_tokens(stage, asked);
  const auto panel = std::max(calibrate::kPanelTokens, asked.sequence_length);
  return placed_weights(place,
                        {.model = model, .item = calibrate::kProfiledWeights, .plan = [&](bool offloaded) {
                           return calibrate::plan_profile(model, sizeof(float), tokens, panel, offloaded,
                                                          ops::path_of(place.device));
                         }});
}

// A machine holds the weights once, and its ranks share what is left.
base::Json run(const Context& context, const Stage& stage, bool offloaded) {
  const auto& options = options_of(stage);
  const auto model = calibrated_model(context, stage, asked_by(options), offloaded);
  calibrate::ProfilePlace place{.directory = context.directory.stage_directory(stage.name),
                                .scratch = context.directory.checkpoints(stage.name),
                                .identity = {},
                                .memory = memory_of_rank(context.place, model.weights.config),
                                .group = &context.group};
  context.group.agree([&] { place.identity = identity_of(model.path, model.sources, options); });
  return to_json(calibrate::profile(model.weights, model.sources, place, context.observer));
}

ResolvedStage resolve(const PlanContext& context, const Stage& stage) {
  const auto asked = asked_by(options_of(stage));
  ResolvedStage resolved{.lengths = {asked.length()}, .check = [&stage, asked](const PlanContext& known) {
                           (void)calibration_text(known, stage, asked);
                         }};
  const auto config = context.models.config(stage.from);
  if (!config) return resolved;
  const auto weights = placed(context.place, stage, *config);
  resolved.memory = weights.memory;
  resolved.work = [&stage, asked, model = *config] {
    return profiling_work(options_of(stage), model, calibration_tokens(stage, asked));
  };
  resolved.run = [&stage, offloaded = weights.offloaded](const Context& running) {
    return run(running, stage, offloaded);
  };
  return resolved;
}

}  // namespace

const StageFunctions kProfiling = {.text_use = use_of_calibration_text, .resolve = resolve};

}  // namespace retort::pipeline
