#pragma once
// A run directory holds all that a run is and made, so that it can be resumed, moved and read without
// anything else:
//
//   recipe.json  recipe.yaml    the recipe with every default filled in
//   provenance.json             {"starts": [...]}: an object for each time the run was started
//   metrics.jsonl               an object per training step
//   models/<stage>/             Hugging Face directories; <stage>.1, ... are students of a select stage
//   checkpoints/<stage>/        state of a stage that is not finished
//   stages/<stage>.json         what a finished stage found; its existence means finished
//   stages/<stage>/             files of a stage that are neither model nor checkpoint
//   stages/<stage>.documents.jsonl   what an evaluate or select stage found for each document
//   report.html  report.json    written by the report layer
//   lock                        held while a process works here

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "retort/base/directory_lock.h"
#include "retort/base/files.h"
#include "retort/base/json.h"

namespace retort::record {

/// What a run is started with.
struct RunStart {
  base::Json recipe;        ///< resolved
  std::string recipe_yaml;  ///< the same as a recipe file
  base::Json provenance;
};

class RunDirectory {
 public:
  /// Creates the directory, or enters it to go on.  Throws StorageError (cannot be written, another process
  /// works in it) or UsageError (it holds another recipe: the keys that differ are named).
  static RunDirectory open(const base::Path& path, const RunStart& start);

  const base::Path& path() const { return path_; }
  /// What the user must know of a lock that the file system could not give; empty when it is held.
  const std::string& lock_warning() const { return lock_->warning(); }
  /// True when the directory held this run already.
  bool resumed() const { return resumed_; }

  base::Path metrics_path() const { return path_ / "metrics.jsonl"; }
  base::Path report_path() const { return path_ / "report.html"; }
  base::Path model_directory(std::string_view stage) const { return path_ / "models" / stage; }
  base::Path checkpoints(std::string_view stage) const { return path_ / "checkpoints" / stage; }
  base::Path result_path(std::string_view stage) const;
  base::Path documents_path(std::string_view stage) const;
  /// A place for files of a stage that are neither model, checkpoint nor result; not created.
  base::Path stage_directory(std::string_view stage) const { return path_ / "stages" / stage; }

  /// Takes back what open() made, if this run is new and there is no metric, checkpoint, model or result yet.
  void discard_if_nothing_was_made() const noexcept;

  bool finished(std::string_view stage) const;
  /// The result of a finished stage; throws StorageError when it has none, DataError when it is damaged.
  base::Json result(std::string_view stage) const;
  /// Marks the stage as finished: call it after everything else of the stage is on disk.  Throws
  /// StorageError.
  void write_result(std::string_view stage, const base::Json& result) const;

 private:
  explicit RunDirectory(base::Path path);
  void enter(const RunStart& start);
  void remove_created() const;

  base::Path path_;
  std::unique_ptr<base::DirectoryLock> lock_;
  bool resumed_ = false;
  std::vector<base::Path> created_;  ///< the directory and its parents, as far as open() made them
};

/// What a run directory tells without entering it; a run that is at work may be looked at.
struct RunContents {
  base::Json recipe;
  base::Json provenance;
  std::vector<std::pair<std::string, base::Json>> results;  ///< of finished stages, in recipe order
};

bool is_run_directory(const base::Path& path);
/// Throws StorageError (cannot be read) or DataError (damaged).
RunContents read_run(const base::Path& path);

/// Dotted paths of the leaves in which two JSON documents differ, in the order of `a`, then what only `b`
/// has. Lists of different length differ as a whole.
std::vector<std::string> differing_keys(const base::Json& a, const base::Json& b);

}  // namespace retort::record
