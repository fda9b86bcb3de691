#pragma once
// One process at a time in a directory.

#include <string>

#include "retort/base/files.h"

namespace retort::base {

/// An exclusive advisory lock on the file `lock` in a directory, held as long as the object lives and gone
/// with the process.
class DirectoryLock {
 public:
  /// Throws StorageError, naming the process that holds it where one does.  On a file system without locks
  /// (Lustre may be mounted so) the object holds none, and warning() says so.
  explicit DirectoryLock(const Path& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  /// A sentence for the user; empty when the lock is held.
  const std::string& warning() const { return warning_; }

 private:
  int descriptor_ = -1;
  std::string warning_;
};

}  // namespace retort::base
