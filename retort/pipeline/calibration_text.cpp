#include "retort/pipeline/calibration_text.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "retort/base/error.h"
#include "retort/base/hash.h"
#include "retort/calibrate/enough_text.h"
#include "retort/data/windows.h"
#include "retort/io/model_directory.h"
#include "retort/pipeline/text_checks.h"
#include "retort/shard/weights_of_machine.h"

namespace retort::pipeline {
namespace {

// Of every source.
std::int64_t sequences_of(const recipe::Stage& stage, std::int64_t tokens, std::int64_t sequence_length) {
  const auto wanted = tokens / std::ssize(stage.data);
  return std::max<std::int64_t>(1, (wanted + sequence_length - 1) / sequence_length);
}

// `whole`: conversations, which are not cut, so that less than a sequence may be missing.
void require_enough(const recipe::Stage& stage, const calibrate::SourceText& source, std::int64_t wanted,
                    std::int64_t sequence_length, bool whole) {
  base::require<base::DataError>(!whole || !source.sequences.empty(), "stage '", stage.name, "': source '",
                                 source.name, "' has no conversation with an answer in at most ",
                                 sequence_length, " tokens; raise sequence_length or add text.");
  base::require<base::DataError>(!source.sequences.empty(), "stage '", stage.name, "': source '", source.name,
                                 "' has fewer than the ", sequence_length,
                                 " tokens of a calibration sequence; add text or lower sequence_length.");
  base::require<base::DataError>(data::has_target(source.sequences), "stage '", stage.name, "': source '",
                                 source.name, data::kNothingToPredict);
  const auto found = calibrate::num_tokens(source);
  base::require<base::DataError>(found + (whole ? sequence_length : 0) >= wanted, "stage '", stage.name,
                                 "': source '", source.name, "' has only ", found,
                                 " tokens of calibration text, expected ", wanted,
                                 "; add text or lower calibration_tokens.");
}

std::vector<data::Sequence> sequences_from(const data::SourceOptions& source, const recipe::Stage& stage,
                                           const CalibrationAsked& asked, const ModelText& text,
                                           record::Observer& observer) {
  const data::PackingOptions packing{.sequence_length = asked.sequence_length};
  std::int64_t skipped_lines = 0;
  auto sequences =
      data::calibration_sequences(source, packing, text.encode(), text.special, asked.seed,
                                  sequences_of(stage, asked.tokens, asked.sequence_length), &skipped_lines);
  say_skipped(stage.name, source.name, skipped_lines, observer);
  return sequences;
}

void require_enough(const recipe::Recipe& recipe, const recipe::Stage& stage,
                    const std::vector<calibrate::SourceText>& sources, const CalibrationAsked& asked) {
  for (const auto& source : sources)
    require_enough(stage, source, asked.tokens / std::ssize(stage.data), asked.sequence_length,
                   data::PackingOptions().keeps_whole(recipe.source(source.name)));
}

}  // namespace

std::vector<calibrate::SourceText> calibration_text(const PlanContext& context, const recipe::Stage& stage,
                                                    const CalibrationAsked& asked) {
  const auto text = read_model_text(context.models.tokenizer_of_line(stage.from),
                                    context.models.config_of_line(stage.from));
  std::vector<calibrate::SourceText> sources;
  record::Observer silent;  // the stage reads the text again, and says then what it skipped
  for (const auto& source : context.recipe.sources(stage))
    sources.push_back({source.name, sequences_from(source, stage, asked, text, silent)});
  require_enough(context.recipe, stage, sources, asked);
  return sources;
}

CalibratedStage calibrated_stage(const Place& place, const recipe::Stage& stage,
                                 const CalibrationAsked& asked,
                                 const std::function<WeightsToPlace(std::int64_t text_tokens)>& weights_for) {
  const auto text_tokens = std::ssize(stage.data) * asked.sequence_length *
                           sequences_of(stage, asked.tokens, asked.sequence_length);
  return {stage, asked, text_tokens, placed_weights(place, weights_for(text_tokens))};
}

CalibratedModel calibrated_model(const Context& context, const CalibratedStage& calibrated) {
  const auto& [stage, asked, text_tokens, weights] = calibrated;
  CalibratedModel model{.path = context.model_path(stage.from), .weights = {}, .writes = true, .sources = {}};
  model::UnitSource source;
  context.group.agree([&] { source = model::open_weights(model.path); });
  if (weights.offloaded)
    context.observer.message(record::Level::info,
                             base::join("stage '", stage.name,
                                        "': the weights stay in the memory of the machine, and blocks are "
                                        "copied to the accelerator when they compute."));
  auto shared =
      shard::weights_of_machine(source, at::kFloat, weights.offloaded ? at::kCPU : context.place.device,
                                context.place.device, context.group);
  model.weights = std::move(shared.weights);
  model.writes = shared.writes;
  std::optional<ModelText> text;
  for (const auto& of_stage : context.recipe.sources(stage)) {
    auto sequences = context.read_once([&] {
      if (!text) text = read_model_text(model.path, source.config);
      return sequences_from(of_stage, stage, asked, *text, context.observer);
    });
    model.sources.push_back({of_stage.name, std::move(sequences)});
  }
  context.group.together([&] { require_enough(context.recipe, stage, model.sources, asked); });
  return model;
}

void save_compressed(const Context& context, const recipe::Stage& stage, const base::Path& from,
                     const model::Weights& weights) {
  model::save_model(weights, context.directory.model_directory(stage.name), from,
                    provenance_of(stage, at::kFloat, base::Json::array({describe_input(stage.from, from)})));
}

base::Json model_fingerprint(const base::Path& model) {
  auto files = weight_checksums(model);
  if (!io::is_gguf(model)) files["config.json"] = base::hash_file(model / "config.json");
  return files;
}

}  // namespace retort::pipeline
