#pragma once
// A file mapped read-only.  Weight files of every format are read through it.

#include <cstddef>
#include <memory>
#include <span>

#include "retort/base/files.h"

namespace retort::io {

class MappedFile {
 public:
  /// Maps the whole file; `format` names in messages what it is expected to be ("a safetensors file"). Throws
  /// StorageError (cannot be read) or ModelError (not a regular file, fewer than `min_bytes`, or growing).
  static MappedFile open(const base::Path& path, const char* format, std::size_t min_bytes);

  ~MappedFile();
  MappedFile(MappedFile&&) noexcept;
  MappedFile& operator=(MappedFile&&) noexcept;

  const base::Path& path() const;
  /// Valid as long as this object lives.
  std::span<const std::byte> bytes() const;
  /// Throws ModelError when the file on disk is no longer as long as the mapping, whose pages would then
  /// fault.
  void check_unchanged() const;

 private:
  struct Mapping;
  explicit MappedFile(std::unique_ptr<Mapping> mapping);
  std::unique_ptr<Mapping> mapping_;
};

}  // namespace retort::io
