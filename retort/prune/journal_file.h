#pragma once
// The evaluations of a search on disk: a line each, appended as they come.  A line that a crash cut short is
// dropped.

#include <fstream>
#include <string>
#include <vector>

#include "retort/base/files.h"
#include "retort/search/journal.h"

namespace retort::prune {

class JournalFile {
 public:
  /// Reads what is there; a file of another search (by `fingerprint`), or none, begins anew.  Throws
  /// StorageError.
  JournalFile(base::Path path, const std::string& fingerprint);

  const std::vector<search::Journal::Entry>& earlier() const { return earlier_; }
  /// Throws StorageError (disk full, ...).
  void append(const search::Journal::Entry& entry);

 private:
  void read(const std::string& fingerprint);

  base::Path path_;
  std::vector<search::Journal::Entry> earlier_;
  std::ofstream out_;
};

}  // namespace retort::prune
