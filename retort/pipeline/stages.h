#pragma once
// What a run does with each kind of stage: a row for each, in a file of its own under stages/.  What a recipe
// knows of it is in recipe/stage_kinds.h, what the report shows of it in report/sections.h.
//
// A stage is resolved before the run begins.  One whose models earlier stages make is resolved again when its
// turn comes and they are there.

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "retort/base/error.h"
#include "retort/base/json.h"
#include "retort/pipeline/context.h"
#include "retort/pipeline/known_models.h"
#include "retort/pipeline/stage_work.h"
#include "retort/recipe/recipe.h"
#include "retort/shard/memory_plan.h"

namespace retort::pipeline {

/// What a stage is resolved by: before the run begins, and within it.
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

/// The recipe's key for a sequence that a stage shows its models, and its tokens at most.
struct SequenceLength {
  const char* key;
  std::int64_t tokens;
};

/// What follows from a stage's keys and its models.  The checks before a run, the dry run and the run itself
/// read it, and none of them derives it again.
struct ResolvedStage {
  std::vector<SequenceLength> lengths = {};
  /// The most that the stage will hold.  Nothing where it holds no model, or one that is still to be made.
  std::optional<shard::MemoryPlan> memory = {};
  std::function<StageWork()> work = nullptr;  ///< null likewise, and where nobody has counted it
  /// Null, or reads text and files and throws what is wrong with them, beyond what is checked for every
  /// stage.
  std::function<void(const PlanContext&)> check = nullptr;
  /// Works, and leaves a model directory, files or a result.  Returns what is reported; throws
  /// record::StoppedError when the user asked to stop.  Collective.  Null where a model is still to be made.
  std::function<base::Json(const Context&)> run = nullptr;
};

struct StageFunctions {
  /// Null for a kind that reads no text.
  TextUse (*text_use)(const recipe::Stage& stage) = nullptr;
  /// Says nothing and changes nothing: every rank resolves the stage to the same.  `stage` has to outlive
  /// what is returned.
  ResolvedStage (*resolve)(const PlanContext& context, const recipe::Stage& stage);
  /// Null, or what is printed of the result when the run ends.
  std::string (*summary)(const base::Json& result) = nullptr;
};

/// Of the stages that take statistics from calibration text: they learn from it.
inline TextUse use_of_calibration_text(const recipe::Stage&) {
  return {.learns = true};
}

extern const StageFunctions kTraining, kProfiling, kPruning, kSparsifying, kSelecting, kEvaluating,
    kExporting;

/// Of a kind of stage.
inline const StageFunctions& functions_of(recipe::StageKind kind) {
  using recipe::StageKind;
  static const std::pair<StageKind, const StageFunctions&> rows[] = {
      {StageKind::train, kTraining},        {StageKind::finetune, kTraining},
      {StageKind::profile, kProfiling},     {StageKind::prune, kPruning},
      {StageKind::sparsify, kSparsifying},  {StageKind::distill, kTraining},
      {StageKind::select, kSelecting},      {StageKind::evaluate, kEvaluating},
      {StageKind::export_model, kExporting}};
  for (const auto& [row, functions] : rows)
    if (row == kind) return functions;
  throw base::InternalError("a stage of no kind.");
}

/// All false for a kind that reads no text.
TextUse text_use_of(const recipe::Stage& stage);

/// Resolves a stage whose models are there.  `before`: what this rank resolved it to before the run, if they
/// were there by then; null: nothing.  Throws MemoryError, before any of them is loaded, where it needs more
/// than there is.  Collective.
ResolvedStage resolved(const Context& context, const recipe::Stage& stage,
                       const ResolvedStage* before = nullptr);

}  // namespace retort::pipeline
