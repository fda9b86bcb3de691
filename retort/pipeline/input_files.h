#pragma once
// The files outside its run that a stage reads, and what tells them apart from others.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/recipe/recipe.h"
#include "retort/record/run_files.h"

namespace retort::pipeline {

/// Of a file of a model, where names and shapes are.
inline constexpr std::size_t kModelHeadBytes = std::size_t{1} << 20;

/// Files up to this size are read whole.
inline constexpr std::size_t kWholeBytes = std::size_t{1} << 24;

/// Size and checksum: of all of a file up to 16 MiB, else of its first bytes and of samples of what follows.
/// "none" where there is no file.
std::string sampled_checksum(const base::Path& file, std::size_t head_bytes = kModelHeadBytes);

/// Adds {path: checksum} of the files of models, configurations and tokenizers that no stage makes; of large
/// ones of their first MiB, where names and shapes are, and of 64 samples.  Models of one shape differ in
/// most values.
void add_outside_models(const recipe::Recipe& recipe, const recipe::Stage& stage, base::Json& has);
/// The same of the files of a source of text, with a head of 64 KiB.  Throws DataError where a pattern has
/// none.
void add_source_files(const data::SourceOptions& source, base::Json& has);

/// The same of the models, made by no stage, that write text for sources.
void add_outside_writers(const recipe::Recipe& recipe, base::Json& has);

/// {path: checksum} of all files outside the run that the stage reads: models and text; and of text
/// that a model wrote, where it is there.
base::Json input_files(const recipe::Recipe& recipe, const recipe::Stage& stage);

/// The files that stages of a run read, by stage: finished ones, and those that would go on from what they
/// saved. Damaged results have none.
using FilesRead = std::vector<std::pair<std::string, base::Json>>;
FilesRead files_read(const record::RunFiles& run);

/// Notes in the run directory what a stage begins to read, for when it goes on.  Throws StorageError.
void note_inputs(const record::RunFiles& run, const recipe::Stage& stage, const base::Json& files);

/// Throws UsageError where one of `files`, which the stage is to read, has changed since an earlier one, or
/// an earlier start of this one, read it: then the run's numbers would be of different text or of different
/// models.
void require_same_inputs(const recipe::Stage& stage, const base::Json& files, const FilesRead& earlier);

}  // namespace retort::pipeline
