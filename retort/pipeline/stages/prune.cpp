// Stage prune: the model that loses least at the target size.
#include <ATen/ATen.h>

#include <algorithm>

#include "retort/architecture/counts.h"
#include "retort/architecture/loading.h"
#include "retort/base/error.h"
#include "retort/base/units.h"
#include "retort/calibrate/profile_file.h"
#include "retort/calibrate/split_text.h"
#include "retort/model/weights.h"
#include "retort/ops/path.h"
#include "retort/pipeline/calibration_text.h"
#include "retort/pipeline/stages.h"
#include "retort/prune/options.h"
#include "retort/prune/plan.h"
#include "retort/prune/searched.h"
#include "retort/prune/target.h"
#include "retort/record/keys.h"
#include "retort/record/scratch.h"

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

// Before the hours are spent.  A model that is still to be made is taken for one whose blocks are alike.
void say_where_it_will_load(const PlanContext& context, const Stage& stage) {
  const auto units = options_of(stage).units;
  const bool alike = units == prune::Units::uniform || units == prune::Units::blocks;
  context.observer.message(
      record::Level::info,
      base::join("stage '", stage.name, "': its model will load ",
                 architecture::where_it_will_load(context.models.config_of_line(stage.from), alike)));
}

void check_options(const PlanContext& context, const Stage& stage) {
  const auto& options = options_of(stage);
  base::require<base::UsageError>(
      stage.profile.empty() || !prune::ranking_options(options).uses(calibrate::ChannelRanking::taylor),
      "stage '", stage.name,
      "': ranking by taylor needs gradients, which a profile does not hold; leave profile out or choose "
      "another ranking.");
  prune::require_removable(context.models.config_of_line(stage.from), options);
  warn_of_known_documents(context, stage);
  say_where_it_will_load(context, stage);
}

CalibratedStage pruning(const Place& place, const Stage& stage, const architecture::Config& input) {
  const auto& options = options_of(stage);
  const auto asked = asked_by(options, prune::calibration_tokens_of(input, options));
  const auto batch = std::max(calibrate::kCalibrationBatchTokens, asked.sequence_length);
  const auto memory = memory_of_rank(place, input);
  return calibrated_stage(place, stage, asked, [&](std::int64_t text_tokens) {
    const auto tokens = prune::most_tokens(text_tokens, options);
    return WeightsToPlace{.model = input,
                          .made_parameters = prune::most_made_parameters(input, options),
                          .item = prune::kInputWeights,
                          .plan = [&, tokens](bool offloaded) {
                            return prune::plan_prune_within(memory, /*may_use_disk=*/true, input,
                                                            sizeof(float), tokens, batch, options, offloaded,
                                                            ops::path_of(place.device))
                                .memory;
                          }};
  });
}

std::optional<std::vector<calibrate::BlockScores>> scores_of_profile(const Context& context,
                                                                     const CalibratedStage& s,
                                                                     const CalibratedModel& model) {
  const auto& stage = s.stage;
  if (stage.profile.empty()) return {};
  const auto directory = context.directory.stage_directory(stage.profile);
  const auto description = calibrate::read_profile_description(directory);
  base::require<base::UsageError>(description.at("identity").at("model") == model_fingerprint(model.path),
                                  "stage '", stage.name, "': profile '", stage.profile,
                                  "' is of another model than '", stage.from, "'; profile this one.");
  return calibrate::profile_scores(directory, model.weights, prune::ranking_options(options_of(s.stage)));
}

// Saves finalists as they come, from number 2.
std::function<void(const model::Weights&)> saver(const Context& context, const Stage& stage,
                                                 const base::Path& path) {
  record::remove_ours(context.finalist_path(stage.name, 2).parent_path(), [](const std::string& name) {
    return name.find_first_not_of("0123456789") == name.npos;
  });
  const auto provenance =
      provenance_of(stage, at::kFloat, base::Json::array({describe_input(stage.from, path)}));
  return [=, &context, number = std::size_t{2}](const model::Weights& weights) mutable {
    model::save_model(weights, context.finalist_path(stage.name, number++), path, provenance);
  };
}

prune::PruneResult pruned(const Context& context, const CalibratedStage& s, const CalibratedModel& model) {
  std::optional<std::vector<calibrate::BlockScores>> scores;
  std::function<void(const model::Weights&)> on_tied;
  context.lead([&] {
    scores = scores_of_profile(context, s, model);
    on_tied = saver(context, s.stage, model.path);
  });
  const prune::PruneSetup setup{
      .input = model.weights,
      .sources = model.sources,
      .options = options_of(s.stage),
      .observer = context.observer,
      .place = {.saved_file = context.directory.checkpoints(s.stage.name) / "search.jsonl",
                .memory = memory_of_rank(context.place, model.weights.config)},
      .given = scores ? &*scores : nullptr,
      .group = &context.group,
      .threads_of_leader = context.threads_of_machine()};
  return prune::prune_searched(setup, on_tied);
}

// Rank 0 searches, all measure.
base::Json run(const Context& context, const CalibratedStage& s) {
  const auto model = calibrated_model(context, s);
  const auto result = pruned(context, s, model);
  base::Json json;
  context.lead([&] {
    save_compressed(context, s.stage, model.path, result.weights);
    json = prune::to_json(result.report);
    const auto loads = architecture::where_it_loads(result.report.output);
    json[record::keys::kLoads] = loads;
    context.observer.message(record::Level::info, base::join("prune: the model loads ", loads));
    json[record::keys::kCalibration] = calibrate::describe(
        calibrate::split_by_document(model.sources, prune::shares_of(options_of(s.stage))));
  });
  return json;
}

// How much text is wanted, and what a search needs, follow from the model.
ResolvedStage resolve(const PlanContext& context, const Stage& stage) {
  const auto& options = options_of(stage);
  ResolvedStage resolved{.lengths = {{"sequence_length", options.sequence_length}},
                         .check = [&stage](const PlanContext& known) { check_options(known, stage); }};
  const auto config = context.models.config(stage.from);
  if (!config) return resolved;
  const auto s = pruning(context.place, stage, *config);
  resolved.memory = s.weights.memory;
  resolved.work = [s, input = *config] {
    const auto work = prune::work_of(input, s.text_tokens, options_of(s.stage));
    return StageWork{describe(work), work.least_flops, work.most_flops};
  };
  resolved.check = [s, input = *config](const PlanContext& known) {
    check_options(known, s.stage);
    prune::require_affordable(input, calibration_text(known, s.stage, s.asked), options_of(s.stage));
  };
  resolved.run = [s](const Context& running) { return run(running, s); };
  return resolved;
}

}  // namespace

const StageFunctions kPruning = {.text_use = use_of_calibration_text, .resolve = resolve};

}  // namespace retort::pipeline
