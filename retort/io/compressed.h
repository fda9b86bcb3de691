#pragma once
// Plain, gzip and zstd files read as one stream of bytes in bounded memory.  The first bytes decide, not the
// name, but a name that ends in .gz or .zst is held to it. Several gzip members or zstd frames in a row are
// one stream, as gzip and zstd themselves read them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "retort/base/files.h"

namespace retort::io {

/// Reads the decompressed bytes of a file.
class ByteReader {
 public:
  /// Throws StorageError when the file cannot be opened.
  explicit ByteReader(const base::Path& path);
  ~ByteReader();
  ByteReader(ByteReader&&) noexcept;
  ByteReader& operator=(ByteReader&&) noexcept;

  /// Fills at most `buffer` and returns the count, 0 only at the end.  Throws DataError (corrupt or
  /// truncated, with the byte of the file) or StorageError.
  std::size_t read(std::span<char> buffer);
  const base::Path& path() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Splits a stream into lines; "\n" ends a line and is not part of it, and the last line may lack it.
class LineReader {
 public:
  static constexpr std::size_t kMaxLineBytes = std::size_t{1} << 30;

  explicit LineReader(ByteReader reader, std::size_t max_line_bytes = kMaxLineBytes);
  explicit LineReader(const base::Path& path, std::size_t max_line_bytes = kMaxLineBytes)
      : LineReader(ByteReader(path), max_line_bytes) {}

  /// Reads the next line; false at the end.  Throws DataError for a line that is too long.
  bool next(std::string& line);
  /// Number of the line last returned, from 1.
  std::uint64_t line_number() const { return line_number_; }
  /// Where the line last returned begins, in decompressed bytes.
  std::uint64_t byte_offset() const { return line_start_; }
  const base::Path& path() const { return reader_.path(); }

 private:
  bool fill();

  ByteReader reader_;
  std::size_t max_line_bytes_;
  std::vector<char> buffer_;
  std::size_t position_ = 0;
  std::size_t size_ = 0;
  std::uint64_t line_number_ = 0;
  std::uint64_t line_start_ = 0;
  std::uint64_t consumed_ = 0;
};

}  // namespace retort::io
