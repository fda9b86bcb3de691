// Stages profile and prune.
#include <ATen/ATen.h>

#include "retort/base/error.h"
#include "retort/calibrate/options.h"
#include "retort/calibrate/profile.h"
#include "retort/calibrate/profile_file.h"
#include "retort/calibrate/split_text.h"
#include "retort/model/weights.h"
#include "retort/pipeline/calibration_text.h"
#include "retort/pipeline/stages.h"
#include "retort/prune/greedy.h"
#include "retort/prune/options.h"
#include "retort/prune/part_scores.h"
#include "retort/prune/searched.h"

namespace retort::pipeline {
namespace {

using recipe::Stage;

base::Json identity_of(const base::Path& model, const std::vector<calibrate::SourceText>& domains,
                       const calibrate::ProfileOptions& options) {
  return {{"model", model_fingerprint(model)},
          {"text", calibrate::text_fingerprint(domains)},
          {"sequence_length", options.sequence_length},
          {"seed", options.seed}};
}

std::optional<std::vector<calibrate::BlockScores>> scores_of_profile(const Context& context,
                                                                     const Stage& stage,
                                                                     const model::Weights& input) {
  if (stage.profile.empty()) return {};
  const auto directory = context.directory.stage_directory(stage.profile);
  const auto description = calibrate::read_profile_description(directory);
  base::require<base::UsageError>(
      description.at("identity").at("model") == model_fingerprint(context.model_path(stage.from)), "stage '",
      stage.name, "': profile '", stage.profile, "' is of another model than '", stage.from,
      "'; profile this one.");
  const auto& options = std::get<prune::PruneOptions>(stage.options);
  return calibrate::profile_scores(directory, input, prune::ranking_options(options));
}

// Saves finalists as they come, from number 2.
std::function<void(const model::Weights&)> saver(const Context& context, const Stage& stage) {
  std::filesystem::remove_all(context.finalist_path(stage.name, 2).parent_path());  // of an earlier attempt
  const auto path = context.model_path(stage.from);
  const auto provenance =
      provenance_of(stage, at::kFloat, base::Json::array({describe_input(stage.from, path)}));
  return [=, &context, number = std::size_t{2}](const model::Weights& weights) mutable {
    model::save_model(weights, context.finalist_path(stage.name, number++), path, provenance);
  };
}

}  // namespace

base::Json run_profile_stage(const Context& context, const Stage& stage) {
  const auto& options = std::get<calibrate::ProfileOptions>(stage.options);
  const auto model =
      calibrated_model(context, stage, options.calibration_tokens, options.sequence_length, options.seed);
  return calibrate::profile(model.weights, model.domains,
                            {.directory = context.directory.stage_directory(stage.name),
                             .scratch = context.directory.checkpoints(stage.name),
                             .identity = identity_of(model.path, model.domains, options),
                             .memory = context.available_bytes},
                            context.observer);
}

base::Json run_prune_stage(const Context& context, const Stage& stage) {
  const auto& options = std::get<prune::PruneOptions>(stage.options);
  const auto model =
      calibrated_model(context, stage, options.calibration_tokens, options.sequence_length, options.seed);
  const auto scores = scores_of_profile(context, stage, model.weights);
  const auto* given = scores ? &*scores : nullptr;
  const prune::PrunePlace place{.saved_file = context.directory.checkpoints(stage.name) / "search.jsonl",
                                .memory = context.available_bytes};
  auto result = options.stepwise() ? prune::prune_greedy(model.weights, model.domains, options,
                                                         context.observer, given, place)
                                   : prune::prune_searched(model.weights, model.domains, options, place,
                                                           context.observer, given, saver(context, stage));
  result.report["calibration"] = calibrate::describe(model.domains);
  save_compressed(context, stage, model.path, result.weights);
  return result.report;
}

}  // namespace retort::pipeline
