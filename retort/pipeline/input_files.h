#pragma once
// The files outside its run that a stage reads, and what tells them apart from others.

#include <string>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/recipe/recipe.h"
#include "retort/record/run_files.h"

namespace retort::pipeline {

/// Size and checksum of a file's head, where names and shapes are, and of samples of what follows: models of
/// one shape differ in most of their values.  "none" where there is no file.
std::string sampled_checksum(const base::Path& file);

/// Adds {path: checksum} of the files of models, configurations and tokenizers that no stage makes.
void add_outside_models(const recipe::Recipe& recipe, const recipe::Stage& stage, base::Json& has);
/// The same of the files of a source of text.  Throws DataError where a pattern has none.
void add_source_files(const data::SourceOptions& source, base::Json& has);

/// Both, of all that the stage reads.
base::Json input_files(const recipe::Recipe& recipe, const recipe::Stage& stage);

/// Throws UsageError where a file that the stage is to read has changed since a finished one read it: then
/// the run's numbers would be of different text or of different models.
void require_same_inputs(const recipe::Recipe& recipe, const recipe::Stage& stage,
                         const record::RunFiles& run);

}  // namespace retort::pipeline
