#pragma once
// The calls by which a file reaches the disk.  Everything that must outlive the process is written through
// them, so that a test can let one fail, or forget what was not synced.

#include <sys/types.h>

#include <cstddef>
#include <filesystem>

namespace retort::base {

/// The system's own; results and errno are those of the call of the same name.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual int open(const std::filesystem::path& path, int flags);  ///< with O_CLOEXEC, mode 0644
  virtual ssize_t write(int descriptor, const void* bytes, std::size_t size);
  virtual int sync(int descriptor);  ///< fsync, of a file or a directory
  virtual int rename(const std::filesystem::path& from, const std::filesystem::path& to);
  virtual int exchange(const std::filesystem::path& a, const std::filesystem::path& b);
  virtual int lock(int descriptor);  ///< flock, exclusive, without waiting
};

/// The one in use.
FileSystem& file_system();

/// Puts another one in its place as long as the object lives: for tests.
class ReplacedFileSystem {
 public:
  explicit ReplacedFileSystem(FileSystem& other);
  ~ReplacedFileSystem();
  ReplacedFileSystem(const ReplacedFileSystem&) = delete;
  ReplacedFileSystem& operator=(const ReplacedFileSystem&) = delete;

 private:
  FileSystem* before_;
};

}  // namespace retort::base
