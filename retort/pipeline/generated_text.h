#pragma once
// Sources whose text a model writes.  It is written when the first stage begins that reads it, by all ranks,
// and stays in the run directory: text/<source>/text.jsonl.

#include <optional>
#include <string>
#include <vector>

#include "retort/data/options.h"
#include "retort/pipeline/context.h"
#include "retort/pipeline/stages.h"
#include "retort/record/run_files.h"
#include "retort/shard/memory_plan.h"

namespace retort::pipeline {

/// Gives each such source its file in the run directory, whether it is there or not.
void place_generated_texts(recipe::Recipe& recipe, const record::RunFiles& run);

/// Whether the text of a source is there to be read: its user's, or one that a model wrote to its end.
bool is_there(const data::SourceOptions& source);
/// Those of which it is.
std::vector<data::SourceOptions> those_there(const std::vector<data::SourceOptions>& sources);

/// What writing a text takes.
struct PlannedText {
  std::optional<shard::MemoryPlan> memory = {};  ///< nothing where the model's shape is not known
  std::optional<StageWork> work = {};            ///< of making tokens one by one
};
/// Of a source whose text is not there.  A model that is still to be made counts as what it is made of.
/// Throws what is wrong with model, options and files, as making it would.
PlannedText planned_text(const PlanContext& context, const data::SourceOptions& source);

/// Writes what a stage is to read and is not there as the recipe says; true where something was written.
/// Throws UsageError where a stage has read text that would be written otherwise now, what make_corpus()
/// throws, and record::StoppedError.  Collective.
bool write_texts_of(const Context& context, const recipe::Stage& stage);

}  // namespace retort::pipeline
