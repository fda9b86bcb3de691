#pragma once
// What a run does with each kind of stage: a row for each, in a file of its own under stages/.  What a recipe
// knows of it is in recipe/stage_kinds.h, what the report shows of it in report/sections.h.

#include <optional>
#include <string>
#include <utility>

#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/pipeline/context.h"
#include "retort/pipeline/known_models.h"
#include "retort/recipe/recipe.h"
#include "retort/shard/memory_plan.h"

namespace retort::pipeline {

/// What a stage is checked and planned by, before the run begins.
struct PlanContext {
  const recipe::Recipe& recipe;
  const KnownModels& models;
  record::Observer& observer;
  at::ScalarType dtype;
  Place place;
};

/// The same within a run.
inline PlanContext plan_context(const Context& context, const KnownModels& models) {
  return {context.recipe, models, context.observer, context.dtype, context.place};
}

/// What a stage does with the text of its sources.
struct TextUse {
  bool learns = false;          ///< from the part that is not held out
  bool reads_held_out = false;  ///< so every source must hold some out
  bool chooses = false;         ///< by held-out documents
  bool measures = false;        ///< held-out documents, which nothing may have learned from
};

/// The recipe's key for the longest sequence that a stage shows its models, and its tokens.
struct SequenceLength {
  const char* key;
  std::int64_t tokens;
};

/// What a stage reads and passes through its model.
struct StageWork {
  std::string sentence;  ///< without its end
  double flops = 0;      ///< of products that take as long
};

struct StageFunctions {
  TextUse (*text_use)(const recipe::Stage& stage);
  SequenceLength (*sequence_length)(const recipe::Stage& stage);
  /// Null, or what is checked beyond sources, models, lengths and vocabularies of every stage.
  void (*check)(const PlanContext& context, const recipe::Stage& stage) = nullptr;
  /// The stage's memory where the shapes of its models are known: what it will plan itself, or a little more
  /// where that depends on its text.
  std::optional<shard::MemoryPlan> (*plan)(const PlanContext& context, const recipe::Stage& stage);
  /// Null, or the stage's work when its model is there.
  std::optional<StageWork> (*work)(const PlanContext& context, const recipe::Stage& stage) = nullptr;
  /// Reads the models, works, and leaves a model directory or a result.  Returns what is reported; throws
  /// record::StoppedError when the user asked to stop.  Collective.
  base::Json (*run)(const Context& context, const recipe::Stage& stage);
  /// Null, or what is printed of the result when the run ends.
  std::string (*summary)(const base::Json& result) = nullptr;
};

/// Of the stages that take statistics from calibration text: they learn from it.
inline TextUse use_of_calibration_text(const recipe::Stage&) {
  return {.learns = true};
}
template <typename Options>
SequenceLength calibration_length(const recipe::Stage& stage) {
  return {"sequence_length", std::get<Options>(stage.options).sequence_length};
}
/// Of the stages that train.
inline SequenceLength training_length(const recipe::Stage& stage) {
  return {"packing.sequence_length", std::get<train::TrainOptions>(stage.options).packing.sequence_length};
}

extern const StageFunctions kTraining, kProfiling, kPruning, kSparsifying, kSelecting, kEvaluating;

/// Of a kind of stage.
inline const StageFunctions& functions_of(recipe::StageKind kind) {
  using recipe::StageKind;
  static const std::pair<StageKind, const StageFunctions&> rows[] = {
      {StageKind::train, kTraining},   {StageKind::finetune, kTraining},    {StageKind::profile, kProfiling},
      {StageKind::prune, kPruning},    {StageKind::sparsify, kSparsifying}, {StageKind::distill, kTraining},
      {StageKind::select, kSelecting}, {StageKind::evaluate, kEvaluating}};
  for (const auto& [row, functions] : rows)
    if (row == kind) return functions;
  throw base::InternalError("a stage of no kind.");
}

}  // namespace retort::pipeline
