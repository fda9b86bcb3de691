#pragma once
// What a stage has measured, on disk: a line of JSON each, appended as they come.  A line that a crash cut
// short is dropped.

#include <optional>
#include <string>
#include <vector>

#include "retort/base/files.h"
#include "retort/base/json.h"
#include "retort/base/line_file.h"
#include "retort/record/observer.h"

namespace retort::prune {

/// JSON knows no infinity: null.
double number_or_infinity(const base::Json& json);

class SavedLines {
 public:
  /// Reads what is there; a file with another `fingerprint`, or none, begins anew, and the observer is told.
  /// An empty path saves nothing.  Throws StorageError.
  SavedLines(base::Path path, const std::string& fingerprint, record::Observer& observer);

  const std::vector<base::Json>& earlier() const { return earlier_; }
  /// Throws StorageError (disk full, ...).
  void append(const base::Json& line);

 private:
  void read(const std::string& fingerprint, record::Observer& observer);

  base::Path path_;
  std::vector<base::Json> earlier_;
  std::optional<base::LineFile> file_;
};

}  // namespace retort::prune
