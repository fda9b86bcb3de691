#pragma once
// A file that grows by whole lines.

#include <string_view>

#include "retort/base/files.h"

namespace retort::base {

class LineFile {
 public:
  /// Opens for appending, makes the file if need be, and drops a last line that was cut off; throws
  /// StorageError.
  explicit LineFile(Path path);
  ~LineFile();
  LineFile(LineFile&& other) noexcept;
  LineFile& operator=(LineFile&& other) noexcept;

  /// Adds a line, handed to the system as a whole with its end.  0, or errno of what failed: what was
  /// written of the line is then taken back.
  int append(std::string_view line);
  /// Makes all lines so far durable; 0 or errno.
  int sync();

 private:
  Path path_;
  int descriptor_ = -1;
};

}  // namespace retort::base
