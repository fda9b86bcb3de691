#pragma once
// A run directory that this process works in.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "retort/base/directory_lock.h"
#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/record/run_files.h"

namespace retort::record {

/// What a run is started with.
struct RunStart {
  base::Json recipe;        ///< resolved
  std::string recipe_yaml;  ///< the same as a recipe file
  base::Json provenance;
  /// Keys of a stage that may differ as long as the stage is not finished, such as "search.budget_tokens".
  std::vector<std::string> open_keys = {};
  /// Keys of a stage that earlier versions wrote: a run that has them goes on without, and is told so.
  std::vector<std::string> former_keys = {};
};

class RunDirectory : public RunFiles {
 public:
  /// Creates the directory, or enters it to go on.  Throws StorageError (cannot be written, another process
  /// works in it) or UsageError (it holds files and is no run directory, or another recipe; keys that differ
  /// are named).  Stages that have not begun, text that only they read, and open keys may differ.
  static RunDirectory open(const base::Path& path, const RunStart& start);
  /// Throws what open() would throw of what is there, and changes nothing.
  static void check(const base::Path& path, const RunStart& start);

  /// The directory that rank 0 of the same job has opened, for its other ranks: its places.
  static RunDirectory opened_by_another(const base::Path& path);

  /// What the user must know: of a lock that the file system could not give, of a log that was damaged, and
  /// of keys of an earlier version.
  const std::vector<std::string>& warnings() const { return warnings_; }
  /// True when the directory held this run already.
  bool resumed() const { return resumed_; }

  /// Takes back what open() made, if this run is new and there is no metric, checkpoint, model or result yet.
  void discard_if_nothing_was_made() const noexcept;

  /// Marks the stage as finished, with checksums of all that it left: call it after everything else of the
  /// stage is on disk.  Throws StorageError.
  void write_result(std::string_view stage, const base::Json& result) const;

 private:
  explicit RunDirectory(const base::Path& path);
  void enter(const RunStart& start);
  void add_start(const base::Json& provenance);
  void remove_created() const;

  std::unique_ptr<base::DirectoryLock> lock_;
  bool resumed_ = false;
  std::vector<std::string> warnings_;
  std::vector<base::Path> created_;  ///< the directory and its parents, as far as open() made them
};

/// Dotted paths of the leaves in which two JSON documents differ, in the order of `a`, then what only `b`
/// has. Lists of different length differ as a whole.
std::vector<std::string> differing_keys(const base::Json& a, const base::Json& b);

}  // namespace retort::record
