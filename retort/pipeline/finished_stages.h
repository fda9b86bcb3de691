#pragma once
// What the finished stages of a run left, before somebody takes it: a model that has changed since would give
// numbers that no run describes.

#include "retort/recipe/recipe.h"
#include "retort/record/observer.h"
#include "retort/record/outputs.h"
#include "retort/record/run_files.h"

namespace retort::pipeline {

/// Throws ModelError where a model, or another output, that `stage` takes of a finished one is gone or has
/// changed since.  Look::contents reads all of it.
void require_sound_inputs(const recipe::Stage& stage, const recipe::Recipe& recipe,
                          const record::RunFiles& run, record::Look look);

/// Looks at what all finished stages left, by size, time and inode first.  Throws ModelError where something
/// is gone or has changed that a stage still takes, or where nothing is left to do.  Else the observer is
/// warned, and of each result that is damaged.  Throws UsageError where a stage would replace a model that it
/// did not write. `only_stage` as in RunRequest.
void check_finished_stages(const recipe::Recipe& recipe, const record::RunFiles& run,
                           const std::string& only_stage, record::Observer& observer);

}  // namespace retort::pipeline
