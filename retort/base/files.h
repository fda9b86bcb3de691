#pragma once
// Files that are either whole or absent: written under a temporary name, synced, renamed, directory synced.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>

namespace retort::base {

using Path = std::filesystem::path;

/// Reads a whole file of at most `max_bytes`; throws StorageError (cannot be read) or DataError (too big).
std::string read_file(const Path& path, std::size_t max_bytes = std::size_t{1} << 28);

/// A file that is there, to be read from its beginning.  Throws StorageError.
std::ifstream open_file(const Path& path);
/// Throws StorageError where reading failed rather than came to the end.
void require_was_read(const std::ifstream& in, const Path& path);

/// A file being written; nothing is visible under its final name before commit(), and nothing stays without
/// it. What is there and no regular file, a pipe or /dev/stdout, is written to as it stands.
class AtomicFile {
 public:
  explicit AtomicFile(Path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Throws StorageError (disk full, quota, ...); the temporary file is then removed.
  void write(const void* bytes, std::size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Sync, rename, sync the directory.
  void commit();

 private:
  Path path_;
  Path temporary_;  ///< equal to path_ where it is written to as it stands
  int descriptor_ = -1;
};

/// AtomicFile in one call.
void write_file_atomically(const Path& path, std::string_view content);

/// A directory being filled under a temporary name beside its final one; without commit() nothing of it
/// stays.
class UnfinishedDirectory {
 public:
  /// Throws StorageError.
  explicit UnfinishedDirectory(Path final_path);
  ~UnfinishedDirectory();
  UnfinishedDirectory(const UnfinishedDirectory&) = delete;
  UnfinishedDirectory& operator=(const UnfinishedDirectory&) = delete;

  /// Where to write.
  const Path& path() const { return temporary_; }
  /// Syncs it and gives it its name; what had the name before is replaced, in one step where the file system
  /// can exchange two names.  Throws StorageError.
  void commit();

 private:
  Path final_path_, temporary_;
};

/// UnfinishedDirectory in one call: `fill` writes into the temporary directory that it is given.  An existing
/// `final_path` is replaced only after `fill` has succeeded.  Throws StorageError.
void write_directory_atomically(const Path& final_path, const std::function<void(const Path&)>& fill);

/// Creates a directory and its parents, durably; throws StorageError with the cause.
void make_directories(const Path& path);

/// Removes a file or a directory with all that is in it, if it is there; throws StorageError with the cause.
void remove_all(const Path& path);
/// Whether it is a directory that is not empty.
bool holds_files(const Path& directory);

/// Removes what unfinished atomic writes of an earlier process left in `directory`; a whole that had stepped
/// aside for one of them gets its name back.
void remove_leftovers(const Path& directory);

/// Makes a directory entry durable.
void sync_directory(const Path& directory);

}  // namespace retort::base
