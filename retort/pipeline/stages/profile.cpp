// Stage profile: what the model's activations are on calibration text.
#include <ATen/ATen.h>

#include <algorithm>

#include "retort/architecture/counts.h"
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

void check(const PlanContext& context, const Stage& stage) {
  (void)calibration_text(context, stage, asked_by(options_of(stage)));
}

base::Json identity_of(const base::Path& model, const std::vector<calibrate::SourceText>& sources,
                       const calibrate::ProfileOptions& options) {
  return {{"model", model_fingerprint(model)},
          {"text", calibrate::text_fingerprint(sources)},
          {"sequence_length", options.sequence_length},
          {"seed", options.seed}};
}

std::optional<shard::MemoryPlan> plan(const PlanContext& context, const Stage& stage) {
  const auto& options = options_of(stage);
  const auto config = context.models.config(stage.from);
  if (!config) return {};
  auto memory = calibrate::plan_profile(
      *config, sizeof(float), calibration_tokens(stage, options.calibration_tokens, options.sequence_length),
      std::max(calibrate::kPanelTokens, options.sequence_length));
  memory.share(calibrate::kProfiledWeights, context.ranks.of_common_memory);
  return memory;
}

// A machine holds the weights once, and its ranks share what is left.
base::Json run(const Context& context, const Stage& stage) {
  const auto& options = options_of(stage);
  const auto model = calibrated_model(context, stage, asked_by(options));
  const auto weight_bytes = architecture::num_parameters(model.weights.config) * std::int64_t{sizeof(float)};
  calibrate::ProfilePlace place{
      .directory = context.directory.stage_directory(stage.name),
      .scratch = context.directory.checkpoints(stage.name),
      .identity = {},
      .memory = available_bytes_of_rank(context.available_bytes, context.ranks, weight_bytes),
      .group = &context.group};
  context.group.agree([&] { place.identity = identity_of(model.path, model.sources, options); });
  return to_json(calibrate::profile(model.weights, model.sources, place, context.observer));
}

}  // namespace

const StageFunctions kProfiling = {.text_use = use_of_calibration_text,
                                   .sequence_length = calibration_length<calibrate::ProfileOptions>,
                                   .check = check,
                                   .plan = plan,
                                   .run = run};

}  // namespace retort::pipeline
