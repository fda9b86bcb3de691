// Stage sparsify.
#include <ATen/ATen.h>

#include "retort/base/files.h"
#include "retort/model/weights.h"
#include "retort/pipeline/calibration_text.h"
#include "retort/pipeline/stages.h"
#include "retort/prune/sparsify.h"

namespace retort::pipeline {
namespace {

using recipe::Stage;

// Everything that the bits of a finished block depend on.
base::Json identity_of(const Context& context, const Stage& stage,
                       const std::vector<prune::CalibrationDomain>& domains) {
  return {{"format", 1},
          {"model", model_fingerprint(context.model_path(stage.from))},
          {"text", text_fingerprint(domains)},
          {"stage", recipe::to_json(context.recipe).at("stages").at(stage.name)}};
}

}  // namespace

base::Json run_sparsify_stage(const Context& context, const Stage& stage) {
  const auto& options = std::get<prune::SparsifyOptions>(stage.options);
  const auto path = context.model_path(stage.from);
  const auto input = model::load_weights(path, at::kFloat, context.device);
  require_context(stage.name, "sequence_length", options.sequence_length, input.config);
  const auto domains = calibration_text(context, stage, read_model_text(path, input.config),
                                        options.calibration_tokens, options.sequence_length, options.seed);
  const auto scratch = context.directory.checkpoints(stage.name);
  const auto result = prune::sparsify(input, prune::split_by_document(domains), options,
                                      {.scratch = scratch,
                                       .identity = identity_of(context, stage, domains),
                                       .memory = available_bytes(context.recipe)},
                                      context.observer);
  model::save_model(result.weights, context.directory.model_directory(stage.name), path,
                    provenance_of(stage, at::kFloat, base::Json::array({describe_input(stage.from, path)})));
  base::remove_all(scratch);
  return result.report;
}

}  // namespace retort::pipeline
