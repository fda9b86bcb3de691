#pragma once
// A run directory holds all that a run is and made, so that it can be resumed, moved and read without
// anything else:
//
//   run.json                    says that Retort made this directory
//   recipe.json  recipe.yaml    the recipe with every default filled in
//   provenance.json             {"starts": [...]}: an object for each time the run was started
//   inputs.json                 checksums of the files that each stage began to read
//   metrics.jsonl               an object per training step
//   models/<stage>/             Hugging Face directories; <stage>.1, ... are students of a select stage
//   checkpoints/<stage>/        state of a stage that is not finished
//   stages/<stage>.json         what a finished stage found; its existence means finished
//   stages/<stage>/             files of a stage that are neither model nor checkpoint: hidden states, sums,
//                               finalists of a search
//   stages/<stage>.documents.jsonl   what an evaluate or select stage found for each document
//   text/<source>/text.jsonl    what a model wrote for a source, and beside it what is said of it
//   report.html                 written by the report layer
//   flights/rank-<rank>         the last calls of each of several ranks, for `retort autopsy`
//   stop                        made by the user: asks the run to save and end
//   lock                        held while a process works here

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"

namespace retort::record {

/// The places of a run's files, and what is read without entering the directory: a run that is at work may be
/// looked at.
class RunFiles {
 public:
  explicit RunFiles(base::Path path) : path_(std::move(path)) {}

  const base::Path& path() const { return path_; }
  base::Path recipe_path() const { return path_ / "recipe.json"; }
  base::Path recipe_yaml_path() const { return path_ / "recipe.yaml"; }
  base::Path provenance_path() const { return path_ / "provenance.json"; }
  base::Path inputs_path() const { return path_ / "inputs.json"; }
  base::Path metrics_path() const { return path_ / "metrics.jsonl"; }
  base::Path report_path() const { return path_ / "report.html"; }
  base::Path lock_path() const { return path_ / "lock"; }
  base::Path models_path() const { return path_ / "models"; }
  base::Path checkpoints_path() const { return path_ / "checkpoints"; }
  base::Path flights_path() const { return path_ / "flights"; }
  base::Path stop_path() const { return path_ / "stop"; }
  base::Path texts_path() const { return path_ / "text"; }
  /// What a model wrote for a source.
  base::Path text_path(std::string_view source) const { return texts_path() / source / "text.jsonl"; }
  base::Path results_path() const { return path_ / "stages"; }
  base::Path model_directory(std::string_view stage) const { return models_path() / stage; }
  base::Path checkpoints(std::string_view stage) const { return checkpoints_path() / stage; }
  base::Path result_path(std::string_view stage) const;
  base::Path documents_path(std::string_view stage) const;
  /// A place for files of a stage that are neither model, checkpoint nor result; not created.
  base::Path stage_directory(std::string_view stage) const { return results_path() / stage; }
  /// Those of models, checkpoints and results.
  std::vector<base::Path> folders() const { return {models_path(), checkpoints_path(), results_path()}; }

  /// True when the directory holds a run.
  bool holds_run() const;
  bool finished(std::string_view stage) const;
  /// Whether anything of the stage, or of a select stage's student, is on disk: it was told how to make it.
  bool has_begun(std::string_view stage) const;
  /// Whether there is something that the stage would go on with: a checkpoint, a block, a student's result.
  bool has_saved(std::string_view stage) const;
  /// Names of all stages that have a result, sorted; a select stage's students are among them.
  std::vector<std::string> finished_stages() const;

  /// These throw StorageError (cannot be read) or DataError (damaged).
  base::Json recipe() const;
  base::Json provenance() const;
  base::Json result(std::string_view stage) const;
  /// The same, and nothing where it is damaged: that costs what it said, and not the run.  Throws
  /// StorageError.
  std::optional<base::Json> sound_result(std::string_view stage) const;

 private:
  base::Path path_;
};

}  // namespace retort::record
