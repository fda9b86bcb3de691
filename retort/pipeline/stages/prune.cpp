// Stage prune: the model that loses least at the target size.
#include <ATen/ATen.h>

#include <algorithm>

#include "retort/architecture/counts.h"
#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/calibrate/profile_file.h"
#include "retort/calibrate/split_text.h"
#include "retort/model/weights.h"
#include "retort/pipeline/calibration_text.h"
#include "retort/pipeline/sizing.h"
#include "retort/pipeline/stages.h"
#include "retort/prune/moves.h"
#include "retort/prune/options.h"
#include "retort/prune/part_scores.h"
#include "retort/prune/plan.h"
#include "retort/prune/searched.h"
#include "retort/prune/stepwise.h"
#include "retort/record/keys.h"

namespace retort::pipeline {
namespace {

using recipe::Stage;

const prune::PruneOptions& options_of(const Stage& stage) {
  return std::get<prune::PruneOptions>(stage.options);
}

// The profile ranks by all of its text, where the stage itself ranks by what judges nothing.
void warn_of_known_documents(const PlanContext& context, const Stage& stage) {
  if (stage.profile.empty()) return;
  const auto& seen = context.recipe.stage(stage.profile).data;
  for (const auto& source : stage.data)
    if (std::ranges::count(seen, source) > 0)
      context.observer.message(
          record::Level::warning,
          base::join("stage '", stage.name, "': profile '", stage.profile, "' ranks by documents of data.",
                     source,
                     ", which may be among those that judge here, so f may look a little smaller "
                     "than it is; profile on another source."));
}

CalibrationAsked asked_by(const Stage& stage, const architecture::Config& input) {
  const auto& options = options_of(stage);
  return {prune::calibration_tokens_of(input, options), options.sequence_length, options.seed};
}

void check(const PlanContext& context, const Stage& stage) {
  base::require<base::UsageError>(
      stage.profile.empty() ||
          !prune::ranking_options(options_of(stage)).uses(calibrate::ChannelRanking::taylor),
      "stage '", stage.name,
      "': ranking by taylor needs gradients, which a profile does not hold; leave profile out or choose "
      "another ranking.");
  prune::require_removable(context.models.config_of_line(stage.from), options_of(stage));
  warn_of_known_documents(context, stage);
  // How much text is wanted, and what a search needs, follow from the model.
  if (const auto config = context.models.config(stage.from))
    prune::require_affordable(*config, calibration_text(context, stage, asked_by(stage, *config)),
                              options_of(stage));
}

std::int64_t text_tokens(const Stage& stage, const architecture::Config& input) {
  const auto& options = options_of(stage);
  return calibration_tokens(stage, prune::calibration_tokens_of(input, options), options.sequence_length);
}

PlacedWeights placed(const Place& place, const Stage& stage, const architecture::Config& input) {
  const auto& options = options_of(stage);
  const auto tokens = prune::most_tokens(text_tokens(stage, input), options);
  const auto batch = std::max(calibrate::kCalibrationBatchTokens, options.sequence_length);
  const auto memory = memory_of_rank(place, input);
  return placed_weights(place, {.model = input,
                                .made_parameters = prune::most_made_parameters(input, options),
                                .item = prune::kInputWeights,
                                .plan = [&](bool offloaded) {
                                  return prune::plan_prune_within(memory, /*may_use_disk=*/true, input,
                                                                  sizeof(float), tokens, batch, options,
                                                                  offloaded)
                                      .memory;
                                }});
}

std::optional<shard::MemoryPlan> plan(const PlanContext& context, const Stage& stage) {
  const auto config = context.models.config(stage.from);
  if (!config) return {};
  return placed(context.place, stage, *config).memory;
}

std::optional<StageWork> work(const PlanContext& context, const Stage& stage) {
  const auto& options = options_of(stage);
  const auto config = context.models.config(stage.from);
  if (!config) return {};
  const auto work = prune::work_of(*config, text_tokens(stage, *config), options);
  return StageWork{describe(work), work.flops};
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
  return calibrate::profile_scores(directory, input, prune::ranking_options(options_of(stage)));
}

// Saves finalists as they come, from number 2.
std::function<void(const model::Weights&)> saver(const Context& context, const Stage& stage) {
  base::remove_all(context.finalist_path(stage.name, 2).parent_path());  // of an earlier attempt
  const auto path = context.model_path(stage.from);
  const auto provenance =
      provenance_of(stage, at::kFloat, base::Json::array({describe_input(stage.from, path)}));
  return [=, &context, number = std::size_t{2}](const model::Weights& weights) mutable {
    model::save_model(weights, context.finalist_path(stage.name, number++), path, provenance);
  };
}

prune::PruneResult pruned(const Context& context, const Stage& stage, const CalibratedModel& model) {
  std::optional<std::vector<calibrate::BlockScores>> scores;
  std::function<void(const model::Weights&)> on_tied;
  std::optional<eval::OtherMachine> runs_on;
  context.group.agree([&] {
    if (!context.leads()) return;
    runs_on = other_machine(stage, context.dtype, context.place.device);
    scores = scores_of_profile(context, stage, model.weights);
    on_tied = saver(context, stage);
  });
  const auto& options = options_of(stage);
  const prune::PruneSetup setup{
      .input = model.weights,
      .sources = model.sources,
      .options = options,
      .observer = context.observer,
      .place = {.saved_file = context.directory.checkpoints(stage.name) / "search.jsonl",
                .memory = memory_of_rank(context.place, model.weights.config)},
      .given = scores ? &*scores : nullptr,
      .group = &context.group,
      .runs_on = runs_on ? &*runs_on : nullptr,
      .threads_of_leader = context.threads_of_machine()};
  return options.stepwise() ? prune::prune_stepwise(setup) : prune::prune_searched(setup, on_tied);
}

// Rank 0 searches, all measure.
base::Json run(const Context& context, const Stage& stage) {
  const auto& options = options_of(stage);
  const auto model =
      calibrated_model(context, stage,
                       {.asked = [&](const auto& config) { return asked_by(stage, config); },
                        .placed = [&](const auto& config) { return placed(context.place, stage, config); }});
  const auto result = pruned(context, stage, model);
  base::Json json;
  context.group.agree([&] {
    if (!context.leads()) return;
    save_compressed(context, stage, model.path, result.weights);
    json = prune::to_json(result.report);
    json[record::keys::kCalibration] =
        calibrate::describe(calibrate::split_by_document(model.sources, prune::shares_of(options)));
  });
  return json;
}

}  // namespace

const StageFunctions kPruning = {.text_use = use_of_calibration_text,
                                 .sequence_length = calibration_length<prune::PruneOptions>,
                                 .check = check,
                                 .plan = plan,
                                 .work = work,
                                 .run = run};

}  // namespace retort::pipeline
